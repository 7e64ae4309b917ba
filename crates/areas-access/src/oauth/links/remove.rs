//! `POST …/directory/identity-links/remove`

use super::model::{Issuer, LinkView, Subject};
use super::store;
use crate::oauth::fences;
use provost_areas_identity::directory;
use provost_areas_identity::directory::model::UserId;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct RemoveIdentityLinks;

/// LIMIT: links that one call takes away, so that a unit of work stays short.
const MAX_AT_ONCE: i64 = 200;
/// LIMIT: links that are counted for who says yes, so that the count costs the same for each issuer.
const MOST_COUNTED: i64 = 10_000;

/// Which links.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "required": ["subject"], "properties": { "subject": { "type": "string" }, "all": { "const": false } } },
    { "required": ["all"], "properties": { "subject": { "type": "null" }, "all": { "const": true } } },
]))]
pub struct RemoveBody {
    /// The issuer.
    issuer: Issuer,
    /// The one subject.
    subject: Option<Subject>,
    /// `true`: every subject of the issuer.
    #[serde(default)]
    all: bool,
}

/// What was taken away.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RemovalResult {
    /// The links, at most 200 a call.
    removed: Vec<LinkView>,
    /// How many of the issuer are left; call again with another key until there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<i64>,
}

impl Operation for RemoveIdentityLinks {
    const META: Meta = Meta::write(
        "removeHeadlessIdentityLinks",
        Method::Post,
        "/directory/identity-links/remove",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("identity-links", "remove")
    .example(r#"{"issuer": "https://login.example", "subject": "00u1"}"#)
    .confirmed()
    .of_two(&["removals"])
    .of_deciders()
    .says(
        "Remove one identity link, or those of an issuer",
        "All sessions of the users end. For 90 days an admin links them again, or allows that they link themselves.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = RemoveBody;
    type Output = RemovalResult;

    fn validate(input: &Input<Self>) -> Result<()> {
        if input.body.subject.is_some() == input.body.all {
            return Err(Error::invalid("", "needs either subject or all true"));
        }
        Ok(())
    }

    /// Whose sign-ins they are. Of a whole issuer it is who has a role, and how many there are by the power of ten: nobody reads thousands, they
    /// would not fit, and everybody who signs in meanwhile would make the yes one to something else.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let issuer = input.body.issuer.as_str();
        let Some(subject) = &input.body.subject else {
            let count = store::count_of_issuer(ctx, issuer, MOST_COUNTED)?;
            let users = store::roles_of_issuer(ctx, issuer, MAX_AT_ONCE)?;
            let at_least = count.checked_ilog10().map_or(0, |tens| 10_i64.pow(tens));
            return Ok(json!({ "identityLinks": { "atLeast": at_least }, "users": users }));
        };
        let links: Vec<LinkView> = store::get(ctx, issuer, subject.as_str())?.into_iter().collect();
        let of = |link: LinkView| json!({ "subject": link.subject, "userId": link.user_id });
        let users: Vec<UserId> = links.iter().map(|link| link.user_id.clone()).collect();
        let users = directory::who_they_are(ctx, &users)?;
        Ok(json!({ "identityLinks": links.into_iter().map(of).collect::<Vec<Value>>(), "users": users }))
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RemovalResult> {
        let issuer = input.body.issuer.as_str();
        ctx.target(&fences::ISSUER, issuer);
        let removed = match &input.body.subject {
            Some(subject) => {
                let link = store::get(ctx, issuer, subject.as_str())?;
                vec![link.ok_or_else(|| Error::not_found("identity link"))?]
            }
            None => store::of_issuer(ctx, issuer, MAX_AT_ONCE)?,
        };
        for link in &removed {
            store::unlink(ctx, link)?;
            directory::note_hand(ctx, link.user_id.as_str())?;
        }
        let named = removed
            .iter()
            .map(|link| json!({ "subject": link.subject, "userId": link.user_id }));
        ctx.change("/identityLinks", named.collect::<Vec<Value>>(), Value::Null);
        let remaining = if input.body.all {
            Some(store::list(ctx, (Some(issuer), None), (0, 0))?.1)
        } else {
            None
        };
        Ok(RemovalResult { removed, remaining })
    }
}

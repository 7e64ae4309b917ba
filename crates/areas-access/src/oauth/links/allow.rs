//! `POST …/directory/identity-links/allow`

use super::create::{may_be_linked, may_be_role};
use super::model::Issuer;
use super::store;
use crate::oauth::fences;
use crate::resources::definition::AtMost;
use provost_areas_identity::directory;
use provost_areas_identity::directory::model::UserId;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Code;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct AllowRelinking;

/// LIMIT: how long users may link themselves again: 7 days.
const MAX_SECS: i64 = 7 * 86_400;
/// Everybody, in the store.
const EVERYBODY: &str = "";

/// Whose links may be made anew.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "required": ["userIds"], "properties": { "userIds": { "type": "array", "minItems": 1 }, "all": { "const": false } } },
    { "required": ["all"], "properties": { "userIds": { "type": "null" }, "all": { "const": true } } },
]))]
pub struct AllowBody {
    /// The issuer at which they sign in.
    issuer: Issuer,
    /// The users.
    #[schemars(with = "Option<AtMost<String, 200>>")]
    user_ids: Option<AtMost<UserId, 200>>,
    /// `true`: every user.
    #[serde(default)]
    all: bool,
    /// For how long: a minute to 7 days.
    expires_in_seconds: IntegerBetween<60, MAX_SECS>,
}

/// What is allowed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AllowResult {
    issuer: String,
    /// The users; absent when it is every user.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_ids: Option<Vec<UserId>>,
    /// Until when.
    expires_at: Timestamp,
}

impl Operation for AllowRelinking {
    const META: Meta = Meta::write(
        "allowHeadlessIdentityRelinking",
        Method::Post,
        "/directory/identity-links/allow",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("identity-links", "allow")
    .example(
        r#"{"issuer": "https://login.example", "userIds": ["usr_01m7w5fpg4ctwq7mvve86yenbr"],
           "expiresInSeconds": 86400}"#,
    )
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Let users be linked anew at their next sign-in",
        "For users who have, or had within 90 days, another subject of the issuer, and for users whose login name was \
         changed: each is linked once to the subject for whose address the issuer vouches, in place of the earlier one. \
         Nobody allows it for a user who could do more than they can, and it ends when such a user gets a role.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = AllowBody;
    type Output = AllowResult;

    fn validate(input: &Input<Self>) -> Result<()> {
        let named = input.body.user_ids.as_ref();
        if named.is_some() == input.body.all || named.is_some_and(|ids| ids.is_empty()) {
            return Err(Error::invalid("", "needs either userIds or all true"));
        }
        Ok(())
    }

    /// Who the users are. Of everybody there is nobody to name, and nobody gets by it what not everybody gets.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        match &input.body.user_ids {
            Some(ids) => directory::who_they_are(ctx, ids),
            None => Ok(Value::Null),
        }
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AllowResult> {
        let issuer = input.body.issuer.as_str();
        ctx.target(&fences::ISSUER, issuer);
        may_allow(ctx, &input.body)?;
        let expires_at = ctx.now().plus_secs(input.body.expires_in_seconds.get());
        let user_ids = input.body.user_ids.as_ref().map(|ids| ids.to_vec());
        match &user_ids {
            None => {
                store::allow(ctx, issuer, EVERYBODY, expires_at)?;
                directory::note_hand_on_everybody(ctx)?;
            }
            Some(ids) => {
                for id in ids {
                    store::allow(ctx, issuer, id.as_str(), expires_at)?;
                    directory::note_hand(ctx, id.as_str())?;
                }
            }
        }
        let whose = user_ids.as_ref().map_or(json!("all"), |ids| json!(ids));
        ctx.change("/userIds", Value::Null, whose);
        ctx.change("/expiresAt", Value::Null, json!(expires_at));
        ctx.emit(
            &fences::RELINKING_ALLOWED,
            &fences::RelinkingLeave {
                issuer: issuer.to_owned(),
                expires_at,
            },
        );
        Ok(AllowResult {
            issuer: issuer.to_owned(),
            user_ids,
            expires_at,
        })
    }

    fn recheck(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<()> {
        match may_allow(ctx, &input.body) {
            // Who is gone since can do nothing more; other users under the same key are another request.
            Err(error) if error.code() == Code::NotFound => Ok(()),
            judged => judged,
        }
    }
}

/// Errors: `NotFound`, `EscalationForbidden`.
fn may_allow(ctx: &mut OperationContext<'_>, body: &AllowBody) -> Result<()> {
    match &body.user_ids {
        None => may_be_role(ctx, Some(Admin)),
        Some(ids) => ids.iter().try_for_each(|id| may_be_linked(ctx, id)),
    }
}

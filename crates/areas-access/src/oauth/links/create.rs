//! `POST …/directory/identity-links`

use super::model::{Issuer, LinkView, Reach, Subject};
use super::store;
use crate::oauth::grants;
use provost_areas_identity::directory;
use provost_areas_identity::directory::model::UserId;
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::{Permission, may_mint};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct CreateIdentityLink;

/// Who is who.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// The issuer that names the subject, exactly as in its tokens.
    issuer: Issuer,
    /// The subject, exactly as in its tokens.
    subject: Subject,
    /// The user that it is.
    #[schemars(with = "String")]
    user_id: UserId,
    /// `true`: in place of the subject that the user has of this issuer.
    #[serde(default)]
    replace: bool,
}

impl Operation for CreateIdentityLink {
    const META: Meta = Meta::write(
        "createHeadlessIdentityLink",
        Method::Post,
        "/directory/identity-links",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("identity-links", "create")
    .example(
        r#"{"issuer": "https://login.example", "subject": "00u1",
           "userId": "usr_01m7w5fpg4ctwq7mvve86yenbr"}"#,
    )
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Link a subject of an issuer to a user",
        "Who signs in as the subject is the user from then on. Nobody links a user who could do more than they can. A \
         user has one subject of an issuer: with replace true the earlier link is taken away, and all sessions of the \
         user end. When the user gets a role that you could not give, the link is held until an admin releases it.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = LinkView;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        directory::is_decider(ctx, &input.body.user_id)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<serde_json::Value> {
        directory::standing_of(ctx, &input.body.user_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<LinkView> {
        let body = &input.body;
        let (issuer, subject) = (body.issuer.as_str(), body.subject.as_str());
        ctx.target(&directory::fences::USER, body.user_id.as_str());
        may_be_linked(ctx, &body.user_id)?;
        if let Some(known) = store::get(ctx, issuer, subject)? {
            if known.user_id == body.user_id {
                return Ok(known);
            }
            // A link of a user that is gone is none.
            if grants::user(ctx, known.user_id.as_str())?.is_some() {
                let message = "this subject is linked to another user; remove that link first";
                return Err(Error::new(Code::AlreadyExists, message));
            }
        }
        let has_another = !store::of_both(ctx, issuer, body.user_id.as_str())?.is_empty();
        if has_another && !body.replace {
            let message =
                "the user is linked to another subject of this issuer; replace true takes its place";
            return Err(Error::new(Code::AlreadyExists, message));
        }
        let reach = Reach::of(ctx.actor().permission);
        store::link(ctx, issuer, subject, body.user_id.as_str(), &reach)?;
        Ok(LinkView {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            user_id: body.user_id.clone(),
            created_at: ctx.now(),
            held_at: None,
            reach,
        })
    }

    fn recheck(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<()> {
        match may_be_linked(ctx, &input.body.user_id) {
            // Who is gone since can do nothing more; another user under the same key is another request.
            Err(error) if error.code() == Code::NotFound => Ok(()),
            judged => judged,
        }
    }
}

/// Refuses to decide who is a user that could do more than the caller (IL-4).
///
/// Errors: `NotFound`, `EscalationForbidden`.
pub fn may_be_linked(ctx: &mut OperationContext<'_>, user_id: &UserId) -> Result<()> {
    let user = grants::user(ctx, user_id.as_str())?;
    let user = user.ok_or_else(|| Error::not_found("user"))?;
    may_be_role(ctx, user.role)
}

/// The same of a role.
pub fn may_be_role(ctx: &OperationContext<'_>, role: Option<Role>) -> Result<()> {
    match role {
        Some(role) => may_mint(ctx.actor().permission, Permission::effective(role, None, None)),
        None => Ok(()),
    }
}

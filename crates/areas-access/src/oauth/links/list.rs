//! `GET …/directory/identity-links`

use super::model::{Issuer, LinkView};
use super::store;
use provost_areas_identity::directory::model::UserId;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListIdentityLinks;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only links of this issuer.
    issuer: Option<Issuer>,
    /// Only links of this user.
    user_id: Option<UserId>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// How many to pass over.
    #[serde(default)]
    offset: Offset,
}

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    identity_links: Vec<LinkView>,
    total: i64,
    limit: i64,
    offset: i64,
}

impl Operation for ListIdentityLinks {
    const META: Meta = Meta::read(
        "listHeadlessIdentityLinks",
        "/directory/identity-links",
        "directory",
    )
    .access("directory:read", &[Admin, Auditor])
    .command("identity-links", "list")
    .columns(&[
        "subject",
        "issuer",
        "userId as user",
        "heldAt as held",
        "createdAt as created",
    ])
    .says(
        "List identity links, the newest first",
        "A link says which user a subject of an issuer is. Every filter narrows the list.",
    );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let (limit, offset) = (query.limit.get(), query.offset.get());
        let of = (
            query.issuer.as_ref().map(Issuer::as_str),
            query.user_id.as_ref().map(UserId::as_str),
        );
        let (identity_links, total) = store::list(ctx, of, (limit, offset))?;
        Ok(Page {
            identity_links,
            total,
            limit,
            offset,
        })
    }
}

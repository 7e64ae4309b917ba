//! `GET …/devices/enrolment-tokens`

use super::enrolment::{self, EnrolmentToken};
use super::sight::Sight;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListEnrolmentTokens;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page of enrolment tokens.
    pub struct TokenPage {
        /// The tokens, the newest first.
        enrolment_tokens: EnrolmentToken,
    }
}

const LIST: &str = "listHeadlessEnrolmentTokens";

impl Operation for ListEnrolmentTokens {
    const META: Meta = Meta::read(LIST, "/devices/enrolment-tokens", "fleet")
        .access("fleet:read", &[Admin, Operator, Auditor])
        .command("enrolment-tokens", "list")
        .columns(&[
            "name",
            "uses",
            "maxUses as of",
            "expiresAt as expires",
            "revokedAt as revoked",
            "id",
            "mode",
            "requireApproval as approval",
            "createdBy as by",
            "createdAt as created",
            "tokenPrefix as prefix",
            "revokeReason as why revoked",
        ])
        .says("List enrolment tokens", "Newest first.");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = TokenPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<TokenPage> {
        let query = &input.query;
        let before = page::start(ctx, LIST, query.cursor.as_ref(), i64::MAX)?;
        let mut found = enrolment::list(ctx, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, LIST, query.limit, &mut found, |token| token.seq);
        let sight = Sight::load(ctx)?;
        Ok(TokenPage {
            enrolment_tokens: found.into_iter().map(|token| token.seen(&sight)).collect(),
            next_cursor,
        })
    }
}

//! `GET …/policies/revisions/{policyId}`

use super::inputs::RevisionNumber;
use super::model::{NAMED, PolicyPath, name};
use super::views::RevisionView;
use super::{admission, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListRevisions;

/// The parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevisionsQuery {
    /// Only this one, with what was authored.
    revision: Option<RevisionNumber>,
    /// Those of a policy that was deleted as well.
    #[serde(default)]
    deleted: bool,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct RevisionPage {
        /// The revisions, the newest first.
        revisions: RevisionView,
    }
}

impl Operation for ListRevisions {
    const META: Meta = Meta::read(
        "listHeadlessPolicyRevisions",
        "/policies/revisions/{*policyId}",
        "policies",
    )
    .access("policies:read", &[Admin, Operator, Auditor, Viewer])
    .command("policies", "revisions").columns(&["revision", "action", "enabled", "createdAt as created", "createdBy.id as by", "decidesFrom as from", "decidesUntil as until", "definitionSha256 as digest"])
    .answers(&[NAMED])
    .says(
        "List the revisions of a policy, the newest first",
        "Those of a deleted policy are kept; ask for them with deleted=true. With revision, that one alone is answered, with \
         its definition.",
    );
    type Path = PolicyPath;
    type Query = RevisionsQuery;
    type Body = Empty;
    type Output = RevisionPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RevisionPage> {
        let (id, query) = (&input.path.policy_id, &input.query);
        let found = store::find(ctx, id)?.filter(|policy| policy.is_there() || query.deleted);
        let found = found.ok_or_else(admission::absent)?;
        name(ctx, &found.id);
        if let Some(number) = query.revision {
            let found = store::revisions(ctx, id, number.get() + 1, 1)?.into_iter().next();
            let found = found.filter(|past| past.revision == number.get());
            let found = found.ok_or_else(|| Error::not_found("revision of this policy"))?;
            return Ok(RevisionPage {
                revisions: vec![RevisionView::from(found).with_authored(ctx, id)?],
                next_cursor: None,
            });
        }
        let before = page::start(ctx, Self::META.id, query.cursor.as_ref(), i64::MAX)?;
        let found = store::revisions(ctx, id, before, query.limit.get() + 1)?;
        let mut found: Vec<_> = found.into_iter().map(|past| (past.revision, past)).collect();
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |(place, _)| *place);
        Ok(RevisionPage {
            revisions: found.into_iter().map(|(_, past)| past.into()).collect(),
            next_cursor,
        })
    }
}

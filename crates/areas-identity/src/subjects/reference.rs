//! Resolves a readable reference of a policy to an id (client contract §6).

use crate::words::{Kind, WordQuery, key_of, living};
use provost_kernel::auth::Role;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result};
use provost_policy::match_key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ResolveReference;

/// What a policy can name so far; kinds are added with their areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ReferenceKind {
    /// By login name, address or id.
    User,
    /// By name or id.
    Group,
    /// By a name or id.
    Skill,
    /// By name or id.
    ServiceAccount,
}

impl From<ReferenceKind> for Kind {
    fn from(kind: ReferenceKind) -> Self {
        match kind {
            ReferenceKind::User => Self::User,
            ReferenceKind::Group => Self::Group,
            ReferenceKind::Skill => Self::Skill,
            ReferenceKind::ServiceAccount => Self::ServiceAccount,
        }
    }
}

/// What is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ReferenceQuery {
    /// What is named.
    kind: ReferenceKind,
    /// Its exact name, key, e-mail address or id.
    selector: LongName,
    /// The id of what it belongs to; for kinds that belong to another. None of today's does.
    parent_id: Option<LongName>,
    /// What tells several of one name apart: of users and groups the directory.
    qualifier: Option<LongName>,
}

/// The one thing that a reference names.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Reference {
    kind: ReferenceKind,
    id: String,
    /// As it was asked for.
    selector: String,
    /// What tells it apart from others of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    qualifier: Option<String>,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneReference {
    item: Reference,
}

impl Operation for ResolveReference {
    const META: Meta = Meta::read(
        "resolveHeadlessPolicyReference",
        "/policy-references/resolve",
        "policies",
    )
    .access("policies:read", &Role::ALL)
    .command("policy-references", "resolve")
    .errors(&[400, 401, 403, 404])
    .says(
        "Resolve a readable reference of a policy",
        "Exactly one hit or a refusal: 404 when nothing has the name, 409 when several do. Suspended and disabled subjects \
         can be referred to; deleted ones cannot.",
    );
    type Path = Empty;
    type Query = ReferenceQuery;
    type Body = Empty;
    type Output = OneReference;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneReference> {
        let query = &input.query;
        let selector = query.selector.as_str();
        let qualifier = query.qualifier.as_ref().map(LongName::as_str);
        // The same answer as a definition gets that names it.
        let kind = Kind::from(query.kind);
        let mut asked = WordQuery::default();
        // A version of a skill is no record.
        if key_of(kind, selector) == match_key(selector) {
            asked.add(kind, selector);
        }
        let org = ctx.org();
        let named = living(&mut ctx.tx(), org, &asked)?;
        let named = named.of(kind, selector).iter();
        let mut found: Vec<_> = named
            .map(|named| (named.id.clone(), named.directory_id.clone()))
            .collect();
        // Nothing of today's kinds has a parent.
        found.retain(|(_, directory)| {
            query.parent_id.is_none() && (qualifier.is_none() || qualifier == directory.as_deref())
        });
        let count = found.len();
        match (found.pop(), count) {
            (None, _) => Err(Error::not_found("reference")),
            (Some((id, qualifier)), 1) => Ok(OneReference {
                item: Reference {
                    kind: query.kind,
                    id,
                    selector: selector.to_owned(),
                    qualifier,
                },
            }),
            _ => Err(Error::new(
                Code::Conflict,
                format!("{count} records have this name; a qualifier tells them apart"),
            )),
        }
    }
}

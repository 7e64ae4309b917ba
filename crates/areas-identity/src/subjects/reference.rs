//! Resolves a readable reference of a policy to an id (client contract §6).
//!
//! Users, groups, skills and accounts are found by their words. What another area knows by name, it is asked for; a kind of which nobody
//! knows anything is a name that nothing has.

use crate::words::{Kind, WordQuery, key_of, living};
use provost_kernel::announcement::{Announcement, Question};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result};
use provost_policy::match_key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ResolveReference;

/// What a policy can name.
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
    /// By id or key.
    McpServer,
    /// By name, at the server of `parentId`.
    McpTool,
    /// By name.
    Agent,
    /// By name or catalogue key.
    AiProduct,
    /// By name.
    Integration,
}

/// Where what a reference names is looked for.
enum Place {
    /// Among the words of records.
    Words(Kind),
    /// In the areas that know such things.
    Elsewhere(AskedKind),
}

impl ReferenceKind {
    fn place(self) -> Place {
        match self {
            Self::User => Place::Words(Kind::User),
            Self::Group => Place::Words(Kind::Group),
            Self::Skill => Place::Words(Kind::Skill),
            Self::ServiceAccount => Place::Words(Kind::ServiceAccount),
            Self::McpServer => Place::Elsewhere(AskedKind::McpServer),
            Self::McpTool => Place::Elsewhere(AskedKind::McpTool),
            Self::Agent => Place::Elsewhere(AskedKind::Agent),
            Self::AiProduct => Place::Elsewhere(AskedKind::AiProduct),
            Self::Integration => Place::Elsewhere(AskedKind::Integration),
        }
    }
}

/// What areas above this one know by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedKind {
    /// An MCP server.
    McpServer,
    /// A tool of an MCP server.
    McpTool,
    /// An agent.
    Agent,
    /// A product with AI in it.
    AiProduct,
    /// An integration.
    Integration,
}

/// What is called so?
pub struct ReferenceAsked {
    /// The kind.
    pub kind: AskedKind,
    /// Its exact name, key or id.
    pub selector: String,
    /// The id of what it belongs to.
    pub parent: Option<String>,
}

/// Something that is called so.
pub struct ReferenceFound {
    /// Its id.
    pub id: String,
    /// What tells it apart from others of its name.
    pub qualifier: Option<String>,
}

impl Announcement for ReferenceAsked {}
impl Question for ReferenceAsked {
    type Answer = ReferenceFound;
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
    /// The id of what it belongs to: of an MCP tool its server, and it is required there. No other kind belongs to another.
    parent_id: Option<LongName>,
    /// What tells several of one name apart: of users and groups the directory, of MCP servers the key.
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
    .access("policies:read", &[Admin, Operator, Auditor, Viewer])
    .command("policy-references", "resolve")
    .errors(&[400, 401, 403, 404])
    .says(
        "Resolve a readable reference of a policy",
        "Exactly one hit or a refusal: 404 when nothing has the name, 409 when several do. Suspended and disabled subjects \
         can be referred to; deleted ones cannot. MCP servers are found by id and key. Of MCP tools, agents and integrations nothing is known yet.",
    );
    type Path = Empty;
    type Query = ReferenceQuery;
    type Body = Empty;
    type Output = OneReference;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneReference> {
        let query = &input.query;
        let selector = query.selector.as_str();
        let qualifier = query.qualifier.as_ref().map(LongName::as_str);
        if query.kind == ReferenceKind::McpTool && query.parent_id.is_none() {
            let message = "must name the server of the tool";
            return Err(Error::invalid("/query/parentId", message));
        }
        let mut found = match query.kind.place() {
            Place::Words(kind) => of_words(ctx, kind, selector)?,
            Place::Elsewhere(kind) => ctx.ask(&ReferenceAsked {
                kind,
                selector: selector.to_owned(),
                parent: query.parent_id.as_ref().map(|id| id.as_str().to_owned()),
            })?,
        };
        // Nothing but a tool has a parent.
        let has_parent = query.kind == ReferenceKind::McpTool || query.parent_id.is_none();
        found.retain(|found| has_parent && (qualifier.is_none() || qualifier == found.qualifier.as_deref()));
        let count = found.len();
        match (found.pop(), count) {
            (None, _) => Err(Error::not_found("reference")),
            (Some(ReferenceFound { id, qualifier }), 1) => Ok(OneReference {
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

/// Returns the records that a word means: the same answer as a definition gets that names it.
fn of_words(ctx: &mut OperationContext<'_>, kind: Kind, selector: &str) -> Result<Vec<ReferenceFound>> {
    let mut asked = WordQuery::default();
    // A version of a skill is no record.
    if key_of(kind, selector) == match_key(selector) {
        asked.add(kind, selector);
    }
    let org = ctx.org();
    let named = living(&mut ctx.tx(), org, &asked)?;
    let found = named.of(kind, selector).iter().map(|named| ReferenceFound {
        id: named.id.clone(),
        qualifier: named.directory_id.clone(),
    });
    Ok(found.collect())
}

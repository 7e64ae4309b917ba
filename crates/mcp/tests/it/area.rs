//! An area that exists in these tests alone: things, tokens, sessions.

use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::auth::{OrganizationId, Role, ScopeSet, Scopes, Toolset, scope};
use provost_kernel::credential::{
    Admission, Credential, McpClient, Reach, Sessions, TokenScheme, Use, VerifiedToken,
};
use provost_kernel::db::{Migration, Row, Statement, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::fence::{Readers, TargetKind};
use provost_kernel::operation::{Content, Empty, Entry, Input, Meta, Method, NoContent, Operation, Registry};
use provost_kernel::text::IntegerBetween;
use provost_kernel::token::Form;
use provost_kernel::{OperationContext, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

pub const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "kernel",
        sqlite: include_str!("../../../server/src/areas/installation/migrations/sqlite/0001_kernel.sql"),
        postgres: include_str!("../../../server/src/areas/installation/migrations/postgres/0001_kernel.sql"),
    },
    Migration {
        number: 2,
        name: "things",
        sqlite: TABLES_SQLITE,
        postgres: TABLES_POSTGRES,
    },
];

const TABLES_SQLITE: &str = "
ALTER TABLE chain_heads ADD COLUMN rights_changes INTEGER;
ALTER TABLE chain_heads ADD COLUMN rights_rows INTEGER;
ALTER TABLE chain_heads ADD COLUMN rights_sum BLOB;
ALTER TABLE chain_heads ADD COLUMN rights_key TEXT;
CREATE TABLE tokens (organization_id TEXT NOT NULL, id TEXT NOT NULL, lookup_id TEXT NOT NULL, principal TEXT NOT NULL,
  role TEXT NOT NULL, scopes TEXT NOT NULL, mac BLOB NOT NULL, pepper_id TEXT NOT NULL, revoked_at INTEGER,
  PRIMARY KEY (organization_id, id));
CREATE TABLE sessions (organization_id TEXT NOT NULL, token_id TEXT NOT NULL, client TEXT NOT NULL, display TEXT,
  PRIMARY KEY (organization_id, token_id, client));
CREATE TABLE things (organization_id TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (organization_id, id));
";
const TABLES_POSTGRES: &str = "
ALTER TABLE chain_heads ADD COLUMN rights_changes BIGINT;
ALTER TABLE chain_heads ADD COLUMN rights_rows BIGINT;
ALTER TABLE chain_heads ADD COLUMN rights_sum BYTEA;
ALTER TABLE chain_heads ADD COLUMN rights_key TEXT;
CREATE TABLE tokens (organization_id TEXT NOT NULL, id TEXT NOT NULL, lookup_id TEXT NOT NULL, principal TEXT NOT NULL,
  role TEXT NOT NULL, scopes TEXT NOT NULL, mac BYTEA NOT NULL, pepper_id TEXT NOT NULL, revoked_at BIGINT,
  PRIMARY KEY (organization_id, id));
CREATE TABLE sessions (organization_id TEXT NOT NULL, token_id TEXT NOT NULL, client TEXT NOT NULL, display TEXT,
  PRIMARY KEY (organization_id, token_id, client));
CREATE TABLE things (organization_id TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (organization_id, id));
";

/// Makes the scopes of the things those of the program.
pub fn install_scopes() {
    let names = ["audit", "inventory", "managed_config", "policies", "registry"];
    let toolsets = names.map(|name| Toolset {
        place: 0,
        name,
        says: "",
        title: "Things",
        holds: "things",
    });
    let scopes = [
        scope("audit:export")
            .says("Export things")
            .held_by(&[Role::Auditor]),
        scope("audit:read").readers(),
        scope("audit:write"),
        scope("inventory:read").everybody(),
        scope("inventory:write"),
        scope("managed_config:read").readers(),
        scope("managed_config:rollback")
            .says("Clear things")
            .held_by(&[Role::Operator]),
        scope("managed_config:write"),
        scope("policies:read").everybody(),
        scope("policies:write"),
        scope("registry:install").says("Touch things").everybody(),
        scope("registry:read").readers(),
        scope("registry:write"),
    ];
    let made = Scopes::of(toolsets.to_vec(), scopes.to_vec());
    made.and_then(Scopes::install).unwrap();
}

statements! {
    /// A token by its lookup id.
    LOOKUP = unscoped("the lookup id says whose the token is") "SELECT organization_id, id, principal, role, scopes, mac, pepper_id, revoked_at, lookup_id FROM tokens WHERE lookup_id = ?1";
    /// Nobody's session.
    NO_SESSION = unscoped("there are no delegated tokens here") "SELECT organization_id FROM tokens WHERE lookup_id = ?1 AND 1 = 0";
    /// Adds a token.
    ADD_TOKEN = "INSERT INTO tokens (organization_id, id, lookup_id, principal, role, scopes, mac, pepper_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    /// Revokes a token.
    REVOKE = "UPDATE tokens SET revoked_at = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// A session of a token.
    SESSION = "SELECT client FROM sessions WHERE organization_id = ?1 AND token_id = ?2 AND client = ?3";
    /// The sessions of a token.
    SESSIONS = "SELECT client, display FROM sessions WHERE organization_id = ?1 AND token_id = ?2 ORDER BY client";
    /// Adds a session.
    JOIN = "INSERT INTO sessions (organization_id, token_id, client, display) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    /// What was refused, and to whom.
    DENIED = "SELECT action, actor_id FROM audit_entries WHERE organization_id = ?1 AND decision = 'denied' ORDER BY seq";
    /// The things.
    THINGS = "SELECT id FROM things WHERE organization_id = ?1 ORDER BY id";
    /// One thing.
    THING = "SELECT id FROM things WHERE organization_id = ?1 AND id = ?2";
    /// Adds a thing.
    ADD = "INSERT INTO things (organization_id, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    /// Removes a thing.
    REMOVE = "DELETE FROM things WHERE organization_id = ?1 AND id = ?2";
    /// Removes all things.
    CLEAR = "DELETE FROM things WHERE organization_id = ?1";
}

/// What tokens look like.
pub const FORM: Form = Form::new("prov_sat_");

/// The scheme of tokens.
pub struct Tokens;

/// The scheme of sessions, with a client that is cut off while it calls.
#[derive(Default)]
pub struct SessionScheme {
    fleeting: AtomicUsize,
}

/// This client is let in once: when its request is authenticated, and not when its call is judged.
pub const FLEETING: &str = "fleeting";

impl TokenScheme for Tokens {
    fn name(&self) -> &'static str {
        "test"
    }

    fn form(&self) -> Option<Form> {
        Some(FORM)
    }

    fn reach(&self) -> Reach {
        Reach::Principal
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&LOOKUP)
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        Ok(Credential {
            organization: OrganizationId::from_store(row.get(0)?),
            kind: "service_account",
            principal_id: row.get(2)?,
            display: row.get(2)?,
            role: Role::parse(row.str(3)?),
            account_scopes: None,
            token_scopes: Some(ScopeSet::from_store(row.str(4)?)),
            enabled: true,
            token_id: row.get(1)?,
            prefix: row.get(8)?,
            is_own: true,
            mac: row.get(5)?,
            pepper_id: row.get(6)?,
            issued_at: None,
            expires_at: Timestamp::from_ms(i64::MAX / 2),
            revoked_at: row.get(7)?,
            self_rotated: false,
            replay_pending: false,
            last_used_at: None,
            item: None,
            client: None,
            binding: provost_kernel::credential::Binding::Bearer,
        })
    }

    fn first_use(&self, _cx: &mut OperationContext<'_>, _token_id: &str) -> Result<()> {
        Ok(())
    }

    fn touch(&self, _cx: &mut OperationContext<'_>, _used: &Use) -> Result<()> {
        Ok(())
    }
}

impl TokenScheme for SessionScheme {
    fn name(&self) -> &'static str {
        "delegated"
    }

    fn form(&self) -> Option<Form> {
        None
    }

    fn reach(&self) -> Reach {
        Reach::Session
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&NO_SESSION)
    }

    fn read(&self, _row: &Row<'_>) -> Result<Credential> {
        Err(Error::internal("there are no delegated tokens here"))
    }

    fn first_use(&self, _cx: &mut OperationContext<'_>, _token_id: &str) -> Result<()> {
        Err(Error::internal("there are no delegated tokens here"))
    }

    fn touch(&self, _cx: &mut OperationContext<'_>, _used: &Use) -> Result<()> {
        Ok(())
    }
}

impl Sessions for SessionScheme {
    fn began(&self) -> &'static str {
        "session.began"
    }

    fn open(&self, _cx: &mut OperationContext<'_>, _verified: &VerifiedToken) -> Result<()> {
        Err(Error::internal("there are no delegated tokens here"))
    }

    fn admit(&self, tx: &mut Tx<'_>, credential: &Credential, client: &McpClient) -> Result<Admission> {
        if client.id == FLEETING && self.fleeting.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(Admission::Refused);
        }
        if client.id == FLEETING {
            return Ok(Admission::Known {
                session_id: "s".into(),
                last_used_at: Timestamp::from_ms(i64::MAX / 2),
            });
        }
        let known = params![
            credential.organization.as_str(),
            credential.token_id.as_str(),
            client.id.as_str()
        ];
        let found = tx.query_opt(&SESSION, known, |row| row.get::<String>(0))?;
        Ok(found.map_or(Admission::New, |session_id| Admission::Known {
            session_id,
            last_used_at: Timestamp::from_ms(i64::MAX / 2),
        }))
    }

    fn join(
        &self,
        ctx: &mut OperationContext<'_>,
        credential: &Credential,
        client: &McpClient,
    ) -> Result<()> {
        let org = ctx.org();
        let row = params![
            org,
            credential.token_id.as_str(),
            client.id.as_str(),
            client.display.as_deref()
        ];
        ctx.queue(&JOIN, row)
    }
}

/// Names a thing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ThingPath {
    thing_id: String,
}

/// Narrows a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Narrow {
    /// What an id begins with.
    prefix: Option<String>,
    /// How many at most.
    limit: Option<String>,
    /// How many are left out at first.
    offset: Option<IntegerBetween<0, 100>>,
}

/// A new thing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct NewThing {
    /// Its id.
    id: String,
    /// Numbers that nobody needs.
    numbers: Option<Vec<u32>>,
}

/// Things.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Things {
    /// Their ids.
    things: Vec<String>,
}

/// Lines that were read.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Lines {
    /// The lines.
    #[serde(default)]
    lines: Vec<String>,
}

fn things(ctx: &mut OperationContext<'_>) -> Result<Vec<String>> {
    let org = ctx.org();
    ctx.query(&THINGS, params![org], |row| row.get(0))
}

pub struct ListThings;
impl Operation for ListThings {
    const META: Meta = Meta::read("listThings", "/things", "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .says("List things", "By their ids.");
    type Path = Empty;
    type Query = Narrow;
    type Body = Empty;
    type Output = Things;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        let limit = input.query.limit.as_ref().map(|limit| limit.parse::<usize>());
        let limit = limit
            .transpose()
            .map_err(|_| Error::invalid("/query/limit", "must be a number"))?;
        let prefix = input.query.prefix.clone().unwrap_or_default();
        let mut things = things(ctx)?;
        things.retain(|thing| thing.starts_with(&prefix));
        let offset = input.query.offset.map_or(0, IntegerBetween::get);
        let mut things = things.split_off(usize::try_from(offset).unwrap().min(things.len()));
        things.truncate(limit.unwrap_or(usize::MAX));
        Ok(Things { things })
    }
}

pub struct GetThing;
impl Operation for GetThing {
    const META: Meta = Meta::read("getThing", "/things/{thingId}", "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .says("Read a thing", "");
    type Path = ThingPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Things;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        let org = ctx.org();
        let found = ctx.query_opt(&THING, params![org, input.path.thing_id.as_str()], |row| {
            row.get(0)
        })?;
        let thing: String = found.ok_or_else(|| Error::not_found("thing"))?;
        Ok(Things { things: vec![thing] })
    }
}

pub struct CreateThing;
impl Operation for CreateThing {
    const META: Meta = Meta::write("createThing", Method::Post, "/things", "policies")
        .access("policies:write", &[Admin])
        .status(201)
        .says("Create a thing", "Its id is yours to choose.");
    type Path = Empty;
    type Query = Empty;
    type Body = NewThing;
    type Output = Things;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        let (org, id) = (ctx.org(), input.body.id.clone());
        ctx.target(&KIND, id.clone());
        if ctx.execute(&ADD, params![org, id.as_str()])? == 0 {
            return Err(Error::new(Code::AlreadyExists, "there is a thing of this id"));
        }
        let numbers = input.body.numbers.iter().flatten().map(u32::to_string);
        Ok(Things {
            things: std::iter::once(id).chain(numbers).collect(),
        })
    }
}

static KIND: TargetKind = TargetKind::new("thing", Readers::Everybody);

pub struct DeleteThing;
impl Operation for DeleteThing {
    const META: Meta = Meta::write("deleteThing", Method::Delete, "/things/{thingId}", "audit")
        .access("audit:write", &[Admin])
        .status(204)
        .confirmed()
        .says("Delete a thing", "");
    type Path = ThingPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let org = ctx.org();
        ctx.target(&KIND, input.path.thing_id.clone());
        match ctx.execute(&REMOVE, params![org, input.path.thing_id.as_str()])? {
            0 => Err(Error::not_found("thing")),
            _ => Ok(NoContent {}),
        }
    }
}

pub struct ClearThings;
impl Operation for ClearThings {
    const META: Meta = Meta::write("clearThings", Method::Post, "/things/clear", "managed_config")
        .access("managed_config:read", &[Admin, Operator])
        .previews("managed_config:rollback", &[Admin, Operator])
        .says("Clear all things", "");
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = Things;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        let (org, things) = (ctx.org(), things(ctx)?);
        if input.confirm {
            ctx.execute(&CLEAR, params![org])?;
        }
        Ok(Things { things })
    }
}

pub struct TouchThing;
impl Operation for TouchThing {
    const META: Meta = Meta::write("touchThing", Method::Post, "/things/{thingId}/touch", "registry")
        .access("registry:install", &[Admin, Operator, Auditor, Viewer])
        .consents_in_headers()
        .says("Touch a thing", "");
    type Path = ThingPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Things;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        ctx.target(&KIND, input.path.thing_id.clone());
        let reason = input.reason.as_ref().map(|reason| reason.as_str().to_owned());
        Ok(Things {
            things: vec![input.path.thing_id.clone(), reason.unwrap_or_default()],
        })
    }
}

pub struct ImportThings;
impl Operation for ImportThings {
    const META: Meta = Meta::write("importThings", Method::Post, "/things/import", "policies")
        .access("policies:write", &[Admin])
        .consumes(&["application/x-ndjson", "text/csv"], 4096, 10)
        .says("Import things", "A line is an id.");
    type Path = Empty;
    type Query = Empty;
    type Body = Lines;
    type Output = Things;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        let org = ctx.org();
        for line in &input.body.lines {
            ctx.execute(&ADD, params![org, line.as_str()])?;
        }
        Ok(Things {
            things: input.body.lines.clone(),
        })
    }

    fn read_content(content: Content) -> Result<Lines> {
        let text =
            String::from_utf8(content.bytes.into()).map_err(|_| Error::invalid("", "must be UTF-8"))?;
        Ok(Lines {
            lines: text.lines().map(str::to_owned).collect(),
        })
    }
}

pub struct UploadThing;
impl Operation for UploadThing {
    const META: Meta = Meta::write("uploadThing", Method::Post, "/things/upload", "policies")
        .access("policies:write", &[Admin])
        .consumes(&["application/gzip", "application/zip"], 4096, 10)
        .says("Upload a thing", "");
    type Path = Empty;
    type Query = Empty;
    type Body = Lines;
    type Output = Things;

    fn call(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Things> {
        Ok(Things {
            things: input.body.lines.clone(),
        })
    }

    fn read_content(content: Content) -> Result<Lines> {
        Ok(Lines {
            lines: vec![content.media_type, format!("{:?}", content.bytes)],
        })
    }
}

pub struct ReceiveThings;
impl Operation for ReceiveThings {
    const META: Meta = Meta::ingest("receiveThings", "/things/receive", "policies")
        .access("policies:write", &[Admin])
        .consumes(&["application/json", "application/x-protobuf"], 4096, 10)
        .says("Receive things", "From exporters.");
    type Path = Empty;
    type Query = Empty;
    type Body = Lines;
    type Output = Things;

    fn call(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<Things> {
        Ok(Things { things: Vec::new() })
    }
}

pub struct ExportThings;
impl Operation for ExportThings {
    const META: Meta = Meta::read("exportThings", "/things/export", "audit")
        .access("audit:export", &[Admin, Auditor])
        .produces("application/jsonl")
        .says("Export things", "");
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = String;

    fn call(ctx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<String> {
        Ok(things(ctx)?.join("\n"))
    }
}

pub struct FetchThing;
impl Operation for FetchThing {
    const META: Meta = Meta::read("fetchThing", "/things/{thingId}/content", "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .accepts_item_token()
        .produces("application/gzip")
        .says("Fetch a thing", "");
    type Path = ThingPath;
    type Query = Empty;
    type Body = Empty;
    type Output = String;

    fn call(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<String> {
        let size = input.path.thing_id.parse::<usize>();
        Ok(size.map_or_else(|_| input.path.thing_id.clone(), |size| "x".repeat(size)))
    }
}

/// The operations, and `more` lists that do what [`ListThings`] does.
pub fn registry(more: usize) -> Registry {
    let mut entries = vec![
        Entry::of::<ListThings>(),
        Entry::of::<GetThing>(),
        Entry::of::<CreateThing>(),
        Entry::of::<DeleteThing>(),
        Entry::of::<ClearThings>(),
        Entry::of::<TouchThing>(),
        Entry::of::<ImportThings>(),
        Entry::of::<UploadThing>(),
        Entry::of::<ReceiveThings>(),
        Entry::of::<ExportThings>(),
        Entry::of::<FetchThing>(),
    ];
    for number in 0..more {
        let text = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let meta = Meta {
            id: text(format!("listMoreThings{number:03}")),
            path: text(format!("/more/{number}")),
            toolset: "inventory",
            ..ListThings::META
        };
        entries.push(Entry {
            meta: Box::leak(Box::new(meta)),
            ..Entry::of::<ListThings>()
        });
    }
    Registry::default().with(entries)
}

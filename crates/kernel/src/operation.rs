//! The only way to expose behaviour: an operation, declared once.
//!
//! From one `impl Operation` derive the HTTP route, the OpenAPI document, the MCP tool, the CLI command,
//! authorization, idempotency, audit and the rate class. An operation is a synchronous function over a
//! transaction; it may run more than once and must draw time, ids and randomness from [`Cx`] alone.
//!
//! INVARIANT OP-1: an operation without an access rule does not compile ([`Draft::access`]). Proof: the compiler,
//! since only `Draft::access` and `Draft::rule` make a `Meta`.

use crate::auth::{Actor, Role};
use crate::cx::Cx;
use crate::error::{Code, Error, Result};
use crate::fence::{Declared, Fences};
use crate::json;
use crate::text::Reason;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The HTTP method of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates or acts.
    Post,
    /// Replaces.
    Put,
    /// Changes the members that are present.
    Patch,
    /// Removes. The trio travels in headers.
    Delete,
}

impl Method {
    /// Returns the method's name in upper case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// Says whether a request of this method carries a body.
    pub const fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }
}

/// Whether an operation changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Runs in one snapshot, on a reader.
    Read,
    /// Runs in a unit of work, on the writer.
    Write,
}

/// Who may call (D3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any authenticated principal of the organization.
    Authenticated,
    /// A scope and one of these roles.
    Scoped {
        /// The scope that is needed.
        scope: &'static str,
        /// The roles that may use it here.
        roles: &'static [Role],
    },
    /// As `Scoped`, where either of two scopes suffices.
    ScopedEither {
        /// The scope that a refusal names.
        scope: &'static str,
        /// The other one.
        other: &'static str,
        /// The roles that may use either here.
        roles: &'static [Role],
    },
    /// As `Scoped`, or another scope and any role when the caller is the record that the path names, by a token of its
    /// own ([`Actor::is_itself`]).
    ScopedOrSelf {
        /// The scope that is needed.
        scope: &'static str,
        /// The roles that may use it here.
        roles: &'static [Role],
        /// The scope that suffices for oneself.
        self_scope: &'static str,
        /// The path parameter that names the record.
        parameter: &'static str,
    },
}

/// The rate class of an operation (D1.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// 100/s, burst 300.
    Read,
    /// 20/s, burst 100.
    Write,
    /// 10/s, burst 50: questions about hundreds of records at once.
    Resolve,
    /// 2 000/s, burst 4 000: what gateways and exporters ask and tell while people work.
    Decide,
}

/// Where a write's reason, key and confirmation travel (D4.1, D4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// In the body or in headers; reason and key are required.
    Required,
    /// In headers alone and optional; the body holds nothing (D10.3). A missing key is made.
    OptionalHeaders,
}

/// Content that is not JSON, as an operation takes it.
#[derive(Clone, Copy, Debug)]
pub struct Consumes {
    /// The media types, without parameters.
    pub media_types: &'static [&'static str],
    /// A request must be complete within this time. Units: seconds.
    pub timeout_secs: u64,
    /// The operation undoes what `Content-Encoding` says; without it, encoded content is refused.
    pub expands: bool,
}

/// What `confirm: true` needs of an operation that otherwise previews (D1.4 step 8).
#[derive(Clone, Copy, Debug)]
pub struct Performance {
    /// The scope.
    pub scope: &'static str,
    /// The roles.
    pub roles: &'static [Role],
}

/// LIMIT: bytes and nesting of a body (D1.3, D1.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimit {
    /// Bytes.
    pub bytes: usize,
    /// Levels of nesting; content that is not JSON has none.
    pub depth: usize,
}

impl BodyLimit {
    /// 256 KiB and 32 levels.
    pub const ORDINARY: Self = Self {
        bytes: 256 * 1024,
        depth: 32,
    };
}

/// What is declared about an operation. Made by [`Meta::read`], [`Meta::query`] or [`Meta::write`].
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, declared by name"
)]
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The OpenAPI operation id, also the audit action and the MCP tool's name.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path behind `/api/headless/v1/organizations/{organizationId}`. `{name}` is one segment, `{*name}` one or more.
    pub path: &'static str,
    /// One of [`crate::auth::TOOLSETS`].
    pub toolset: &'static str,
    /// Read or write.
    pub kind: Kind,
    /// Who may call.
    pub access: Access,
    /// One line for people.
    pub summary: &'static str,
    /// More, when the summary is not enough.
    pub description: &'static str,
    /// The CLI command: group and verb.
    pub command: [&'static str; 2],
    /// The status of success.
    pub status: u16,
    /// Another status of success with the same answer, for what was there already; see [`Cx::status`].
    pub also: Option<u16>,
    /// `confirm: true` is demanded because nothing can undo the act.
    pub confirm: bool,
    /// The refusal of a call without it says what would be lost ([`Operation::weigh`]).
    pub weighs: bool,
    /// Every call is an audit entry of its own, reads included (D12.4).
    pub sensitive: bool,
    /// The answer holds a secret that is shown once, so a replay needs the caller's key (D4.8).
    pub reveals_secret: bool,
    /// The rate class.
    pub rate: RateClass,
    /// The media type of the answer.
    pub produces: &'static str,
    /// The statuses to be named in the document, where counting them by the path and the body is not right.
    pub errors: Option<&'static [u16]>,
    /// How much a body may hold. More than the ordinary is read after the caller was authorized (D1.10).
    pub limit: BodyLimit,
    /// The body is not JSON but one of these.
    pub consumes: Option<Consumes>,
    /// Where the trio travels.
    pub consent: Consent,
    /// Without `confirm: true` the operation reads and shows what it would do.
    pub performance: Option<Performance>,
    /// A gateway token may call, for the item that it is bound to; the operation checks the item (D10.6).
    pub gateway: bool,
    /// What is sent is kept as history, by the operation itself (D9.11).
    pub ingests: bool,
    /// The precondition that it honours.
    pub precondition: Option<Precondition>,
    /// The headers of its answers, beside those that every answer has.
    pub answers: &'static [&'static str],
}

/// A header of a request that makes an operation act only under a condition (D1.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// `If-Match`: only while the record is the one that the caller saw.
    Match,
    /// `If-None-Match`: only if the caller has not seen it yet.
    NoneMatch,
}

impl Precondition {
    /// The longest list of entity tags that is read, in bytes.
    pub const LONGEST: usize = 1024;

    /// Returns the name of the header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Match => "If-Match",
            Self::NoneMatch => "If-None-Match",
        }
    }
}

/// An operation whose access is not declared yet; it is of no use until it is.
#[derive(Clone, Copy, Debug)]
pub struct Draft(Meta);

impl Draft {
    /// Declares who may call: a scope and roles.
    #[must_use]
    pub const fn access(self, scope: &'static str, roles: &'static [Role]) -> Meta {
        self.rule(Access::Scoped { scope, roles })
    }

    /// Declares who may call by an access rule.
    #[must_use]
    pub const fn rule(self, access: Access) -> Meta {
        Meta { access, ..self.0 }
    }
}

impl Meta {
    /// Begins the declaration of a read.
    pub const fn read(id: &'static str, path: &'static str, toolset: &'static str) -> Draft {
        Draft(Self::blank(
            id,
            Method::Get,
            path,
            toolset,
            Kind::Read,
            RateClass::Read,
        ))
    }

    /// Begins the declaration of a read whose question is a body: it takes no reason and no key.
    pub const fn query(id: &'static str, path: &'static str, toolset: &'static str) -> Draft {
        Draft(Self::blank(
            id,
            Method::Post,
            path,
            toolset,
            Kind::Read,
            RateClass::Read,
        ))
    }

    /// Begins the declaration of an operation that keeps what is sent as history: such events are no mutations, so
    /// it takes no reason and no key and leaves no audit entry each (D9.11). It runs as a read does and records by
    /// what it does [later](Cx::later).
    pub const fn ingest(id: &'static str, path: &'static str, toolset: &'static str) -> Draft {
        let blank = Self::blank(id, Method::Post, path, toolset, Kind::Read, RateClass::Decide);
        Draft(Self {
            ingests: true,
            ..blank
        })
    }

    /// Begins the declaration of a write.
    pub const fn write(id: &'static str, method: Method, path: &'static str, toolset: &'static str) -> Draft {
        Draft(Self::blank(
            id,
            method,
            path,
            toolset,
            Kind::Write,
            RateClass::Write,
        ))
    }

    const fn blank(
        id: &'static str,
        method: Method,
        path: &'static str,
        toolset: &'static str,
        kind: Kind,
        rate: RateClass,
    ) -> Self {
        Self {
            id,
            method,
            path,
            toolset,
            kind,
            access: Access::Authenticated,
            summary: "",
            description: "",
            command: ["", ""],
            status: 200,
            also: None,
            confirm: false,
            weighs: false,
            sensitive: false,
            reveals_secret: false,
            rate,
            produces: "application/json",
            errors: None,
            limit: BodyLimit::ORDINARY,
            consumes: None,
            consent: Consent::Required,
            performance: None,
            gateway: false,
            ingests: false,
            precondition: None,
            answers: &[],
        }
    }

    /// Honours a precondition; [`Input::if_match`] or [`Input::if_none_match`] holds what was sent.
    #[must_use]
    pub const fn precondition(self, precondition: Precondition) -> Self {
        Self {
            precondition: Some(precondition),
            ..self
        }
    }

    /// Names the headers of its answers, beside those that every answer has; see [`Cx::header`].
    #[must_use]
    pub const fn answers(self, headers: &'static [&'static str]) -> Self {
        Self {
            answers: headers,
            ..self
        }
    }

    /// Says in one line what the operation does, and in more words what a caller must know.
    #[must_use]
    pub const fn says(self, summary: &'static str, description: &'static str) -> Self {
        Self {
            summary,
            description,
            ..self
        }
    }

    /// Names the CLI command.
    #[must_use]
    pub const fn command(self, group: &'static str, verb: &'static str) -> Self {
        Self {
            command: [group, verb],
            ..self
        }
    }

    /// Sets the status of success.
    #[must_use]
    pub const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Names another status of success with the same answer, or 304: without one.
    #[must_use]
    pub const fn also(self, status: u16) -> Self {
        Self {
            also: Some(status),
            ..self
        }
    }

    /// Demands `confirm: true`.
    #[must_use]
    pub const fn confirmed(self) -> Self {
        Self {
            confirm: true,
            ..self
        }
    }

    /// Demands `confirm: true`, and says without it what would be lost ([`Operation::weigh`]).
    #[must_use]
    pub const fn weighed(self) -> Self {
        Self {
            confirm: true,
            weighs: true,
            ..self
        }
    }

    /// Gives every call an audit entry.
    #[must_use]
    pub const fn sensitive(self) -> Self {
        Self {
            sensitive: true,
            ..self
        }
    }

    /// Says that the answer holds a secret once.
    #[must_use]
    pub const fn reveals_secret(self) -> Self {
        Self {
            reveals_secret: true,
            ..self
        }
    }

    /// Sets the media type of the answer.
    #[must_use]
    pub const fn produces(self, media_type: &'static str) -> Self {
        Self {
            produces: media_type,
            ..self
        }
    }

    /// Sets the rate class.
    #[must_use]
    pub const fn rate(self, rate: RateClass) -> Self {
        Self { rate, ..self }
    }

    /// Names the statuses of the refusals that the document declares.
    #[must_use]
    pub const fn errors(self, statuses: &'static [u16]) -> Self {
        Self {
            errors: Some(statuses),
            ..self
        }
    }

    /// Takes a larger or deeper JSON body than the ordinary one.
    #[must_use]
    pub const fn reads_up_to(self, bytes: usize, depth: usize) -> Self {
        Self {
            limit: BodyLimit { bytes, depth },
            ..self
        }
    }

    /// Takes content that is not JSON; the trio travels in headers. See [`Operation::read_content`].
    #[must_use]
    pub const fn consumes(
        self,
        media_types: &'static [&'static str],
        bytes: usize,
        timeout_secs: u64,
    ) -> Self {
        let consumes = Some(Consumes {
            media_types,
            timeout_secs,
            expands: false,
        });
        let limit = BodyLimit { bytes, depth: 1 };
        Self {
            limit,
            consumes,
            ..self
        }
    }

    /// Takes content that is encoded as well, as [`Content::encoding`] says.
    #[must_use]
    pub const fn expands(self) -> Self {
        let consumes = match self.consumes {
            Some(consumes) => Some(Consumes {
                expands: true,
                ..consumes
            }),
            None => None,
        };
        Self { consumes, ..self }
    }

    /// Takes the trio from headers, where it is optional, and no member in the body (D10.3).
    #[must_use]
    pub const fn consents_in_headers(self) -> Self {
        Self {
            consent: Consent::OptionalHeaders,
            ..self
        }
    }

    /// Runs as a read under the declared access unless `confirm: true` is said, which needs this as well (D8.5).
    #[must_use]
    pub const fn previews(self, scope: &'static str, roles: &'static [Role]) -> Self {
        Self {
            performance: Some(Performance { scope, roles }),
            ..self
        }
    }

    /// Lets gateway tokens call. A write does not compile with it: a writer judges service accounts alone.
    #[expect(
        clippy::missing_panics_doc,
        reason = "declarations are constants: it panics the compiler"
    )]
    #[must_use]
    pub const fn accepts_gateway_token(self) -> Self {
        assert!(
            matches!(self.kind, Kind::Read),
            "a gateway token calls reads alone"
        );
        Self {
            gateway: true,
            ..self
        }
    }

    /// Says whether the body is larger or deeper than the ordinary, so that it is read after authorization.
    pub fn reads_late(&self) -> bool {
        self.consumes.is_some() || self.limit != BodyLimit::ORDINARY
    }

    /// Says whether the trio has no place in the body.
    pub const fn trio_in_headers(&self) -> bool {
        matches!(self.method, Method::Delete)
            || self.consumes.is_some()
            || matches!(self.consent, Consent::OptionalHeaders)
    }

    /// Returns the names of the path parameters behind the organization, in order.
    pub fn path_parameters(&self) -> Vec<&'static str> {
        self.path
            .split('/')
            .filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| name.strip_prefix('*').unwrap_or(name))
            .collect()
    }

    /// Returns the parameter that may hold slashes, if the path has one. Behind [`IN_QUERY`] in the path its value stands in
    /// the query, under the same name.
    pub fn greedy_parameter(&self) -> Option<&'static str> {
        let mut segments = self.path.split('/');
        segments.find_map(|segment| segment.strip_prefix("{*")?.strip_suffix('}'))
    }

    /// Returns the path as documents show it, where a greedy parameter looks like any other.
    pub fn shown_path(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Returns the statuses that the specification's counts name (decision A), as far as the operation can
    /// answer them: without a record in its path it misses none.
    pub fn named_errors(&self, has_body: bool) -> Vec<u16> {
        if let Some(statuses) = self.errors {
            return statuses.to_vec();
        }
        let mut statuses = vec![401, 403];
        if has_body {
            statuses.insert(0, 400);
        }
        if !self.path_parameters().is_empty() {
            statuses.push(404);
        }
        statuses
    }
}

/// What stands in a path for an id that is said in the query, because proxies would make another path of it: `a//b`, `a/..`.
pub const IN_QUERY: &str = "-";

/// One ability of the product.
pub trait Operation: 'static {
    /// The declaration.
    const META: Meta;
    /// The path parameters behind the organization.
    type Path: DeserializeOwned + JsonSchema + Send + 'static;
    /// The query parameters.
    type Query: DeserializeOwned + JsonSchema + Send + 'static;
    /// The body without the trio `reason`, `idempotencyKey`, `confirm`.
    type Body: DeserializeOwned + JsonSchema + Send + 'static;
    /// The answer.
    type Output: Serialize + JsonSchema;

    /// Does it, inside one transaction.
    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Self::Output>;

    /// Checks again, before a stored answer is repeated, what may have changed about the caller's rights
    /// (D1.4 step 9).
    fn recheck(_cx: &mut Cx<'_>, _input: &Input<Self>) -> Result<()> {
        Ok(())
    }

    /// Returns what others would lose by the act, as a member of the refusal of a call without `confirm: true`
    /// ([`Meta::weighed`]).
    fn weigh(_cx: &mut Cx<'_>, _input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        Ok(None)
    }

    /// Reads content that is not JSON ([`Meta::consumes`]), on a reader thread, before the unit of work.
    fn read_content(_content: Content) -> Result<Self::Body> {
        Err(Error::internal(
            "this operation declares content and does not read it",
        ))
    }

    /// Refuses a body that no single member's type can refuse. Runs with the schema checks.
    fn validate(_input: &Input<Self>) -> Result<()> {
        Ok(())
    }
}

/// What an operation is called with.
#[derive(Debug)]
pub struct Input<O: Operation + ?Sized> {
    /// The path parameters.
    pub path: O::Path,
    /// The query parameters.
    pub query: O::Query,
    /// The body.
    pub body: O::Body,
    /// Why; present for every write.
    pub reason: Option<Reason>,
    /// `confirm: true` was said.
    pub confirm: bool,
    /// The header `If-Match`, as sent, where the operation declares it.
    pub if_match: Option<String>,
    /// The header `If-None-Match`, as sent, where the operation declares it.
    pub if_none_match: Option<String>,
    /// The labels of the program that manages the caller's records.
    pub manager: Option<Manager>,
}

/// The two labels by which a managing program names itself and its workspace. They coordinate; they prove
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The manager.
    pub id: String,
    /// Its workspace.
    pub instance: String,
}

/// The body of an operation that does not take JSON.
#[derive(Clone, Debug)]
pub struct Content {
    /// One of the declared media types, in lower case, without parameters.
    pub media_type: String,
    /// How the bytes are compressed, as the header `Content-Encoding` says; the operation undoes it, with a limit.
    pub encoding: Option<String>,
    /// The bytes.
    pub bytes: Bytes,
}

/// No parameters, or no body.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Empty {}

/// The answer of an operation whose status is 204.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct NoContent {}

/// An answer, ready to be sent.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `ETag`, `Location` and the like.
    pub headers: Vec<(&'static str, String)>,
    /// The bytes.
    pub body: Bytes,
    /// The media type of the bytes.
    pub media_type: &'static str,
    /// Set when the bytes were stored by an earlier request.
    pub replayed: bool,
}

/// A decoded call, bound to its operation.
pub trait Bound: Send {
    /// Runs the operation.
    fn call(&self, cx: &mut Cx<'_>) -> Result<Answer>;

    /// See [`Operation::recheck`].
    fn recheck(&self, cx: &mut Cx<'_>) -> Result<()>;

    /// The reason, if one was given.
    fn reason(&self) -> Option<&str>;
}

impl<O: Operation> Bound for Input<O> {
    fn call(&self, cx: &mut Cx<'_>) -> Result<Answer> {
        if O::META.confirm && !self.confirm {
            let refusal = crate::wire::unconfirmed();
            return Err(match O::weigh(cx, self)? {
                Some((member, value)) => refusal.with(member, value),
                None => refusal,
            });
        }
        let output = O::call(cx, self)?;
        let status = cx.taken_status().unwrap_or(O::META.status);
        let body = if matches!(status, 204 | 304) || cx.answers_later() {
            Bytes::new()
        } else {
            Bytes::from(cx.encode(&output, O::META.produces)?)
        };
        let headers = cx.take_headers();
        debug_assert!(
            headers.iter().all(|(name, _)| O::META
                .answers
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))),
            "{} does not declare every header of {headers:?}",
            O::META.id
        );
        Ok(Answer {
            status,
            headers,
            body,
            media_type: O::META.produces,
            replayed: false,
        })
    }

    fn recheck(&self, cx: &mut Cx<'_>) -> Result<()> {
        O::recheck(cx, self)
    }

    fn reason(&self) -> Option<&str> {
        self.reason.as_ref().map(Reason::as_str)
    }
}

/// The undecoded parts of a call.
pub struct Raw {
    /// Path parameters, by name.
    pub path: Value,
    /// Query parameters, by name.
    pub query: Value,
    /// The body without the trio.
    pub body: Value,
    /// The body, if it is not JSON.
    pub content: Option<Content>,
    /// The reason.
    pub reason: Option<Reason>,
    /// `confirm`.
    pub confirm: bool,
    /// See [`Input::if_match`].
    pub if_match: Option<String>,
    /// See [`Input::if_none_match`].
    pub if_none_match: Option<String>,
    /// See [`Input::manager`].
    pub manager: Option<Manager>,
}

fn bind<O: Operation>(raw: Raw) -> Result<Box<dyn Bound>> {
    let input: Input<O> = Input {
        path: json::decode(raw.path, "/path")?,
        query: json::decode(raw.query, "/query")?,
        body: match raw.content {
            Some(content) => O::read_content(content)?,
            None => json::decode(raw.body, "")?,
        },
        reason: raw.reason,
        confirm: raw.confirm,
        if_match: raw.if_match,
        if_none_match: raw.if_none_match,
        manager: raw.manager,
    };
    O::validate(&input)?;
    Ok(Box::new(input))
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One operation without its types.
pub struct Entry {
    /// The declaration.
    pub meta: &'static Meta,
    /// Decodes a call.
    pub bind: fn(Raw) -> Result<Box<dyn Bound>>,
    /// The schemas of path, query, body and output.
    pub schemas: [SchemaOf; 4],
    /// The names of the query parameters.
    pub query_names: Vec<String>,
    /// LIMIT: characters of query parameters whose schema says how many, by their names.
    pub query_lengths: Vec<(String, usize)>,
    /// Whether the body has members beside the trio, or the trio itself.
    pub has_body: bool,
}

impl Entry {
    /// Returns the entry of an operation.
    pub fn of<O: Operation>() -> Self {
        let mut generator = SchemaGenerator::default();
        let query = O::Query::json_schema(&mut generator);
        let query_names = members(&query);
        let length = |name: &String| {
            let limit = query.get("properties")?.get(name)?.get("maxLength")?.as_u64()?;
            Some((name.clone(), usize::try_from(limit).ok()?))
        };
        let query_lengths = query_names.iter().filter_map(length).collect();
        let body = !members(&O::Body::json_schema(&mut generator)).is_empty();
        Self {
            meta: const { &O::META },
            bind: bind::<O>,
            schemas: [
                <O::Path as JsonSchema>::json_schema,
                <O::Query as JsonSchema>::json_schema,
                <O::Body as JsonSchema>::json_schema,
                |generator| generator.subschema_for::<O::Output>(),
            ],
            query_names,
            query_lengths,
            has_body: O::META.method.has_body()
                && (body || O::META.kind == Kind::Write || O::META.consumes.is_some()),
        }
    }
}

fn members(schema: &Schema) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default()
}

/// Every operation of the product.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Entry>,
    fences: Declared,
}

impl Registry {
    /// Adds an area: its operations, and who reads the details of what it does.
    #[must_use]
    pub fn area(mut self, entries: Vec<Entry>, fences: &'static Fences) -> Self {
        self.fences.add(entries.iter().map(|entry| entry.meta.id), fences);
        self.with(entries)
    }

    /// Adds operations; the details of what they do are for overseers alone.
    #[must_use]
    pub fn with(mut self, entries: Vec<Entry>) -> Self {
        self.entries.extend(entries);
        self
    }

    /// Returns every operation in declared order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns who reads the details of entries and events.
    pub fn fences(&self) -> &Declared {
        &self.fences
    }

    /// Returns the operation of this id.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.meta.id == id)
    }
}

/// Says whether an actor may call an operation on the record that `parameter` names, if any.
///
/// Errors: `RoleForbidden`, `InsufficientScope` (with the scopes that are needed).
pub fn authorize(meta: &Meta, actor: &Actor, path: &Value) -> Result<()> {
    if !actor.has_role {
        let message = "this user has no role; an administrator gives it one (permissionRole)";
        return Err(Error::new(Code::RoleForbidden, message));
    }
    // Its operations let it in for one item, whatever the role and scopes of its principal (D10.6).
    if actor.item.is_some() {
        return Ok(());
    }
    match meta.access {
        Access::Authenticated => Ok(()),
        Access::Scoped { scope, roles } => scoped(actor, scope, roles),
        Access::ScopedEither { scope, other, roles } => {
            scoped(actor, other, roles).or_else(|_| scoped(actor, scope, roles))
        }
        Access::ScopedOrSelf {
            scope,
            roles,
            self_scope,
            parameter,
        } => {
            let named = path.get(parameter).and_then(Value::as_str);
            let is_self = named.is_some_and(|id| actor.is_itself(id));
            if is_self && actor.permission.scopes.has(self_scope) {
                return Ok(());
            }
            scoped(actor, scope, roles)
        }
    }
}

/// Says whether an actor may perform what they may preview.
///
/// Errors: as [`authorize`].
pub fn authorize_performance(meta: &Meta, actor: &Actor) -> Result<()> {
    meta.performance
        .map_or(Ok(()), |needs| scoped(actor, needs.scope, needs.roles))
}

/// Says whether an actor may call an operation for at least some path: what a list of tools shows.
pub fn may_call(meta: &Meta, actor: &Actor) -> bool {
    let own = |scope| actor.has_role && actor.permission.scopes.has(scope);
    actor.item.is_none()
        && (authorize(meta, actor, &Value::Null).is_ok()
            || matches!(meta.access, Access::ScopedOrSelf { self_scope, .. } if own(self_scope) && actor.is_itself(&actor.id)))
}

fn scoped(actor: &Actor, scope: &'static str, roles: &[Role]) -> Result<()> {
    let permission = actor.permission;
    if !roles.contains(&permission.role) {
        let role = permission.role.as_str();
        return Err(Error::new(
            Code::RoleForbidden,
            format!("the role {role} may not do this"),
        ));
    }
    if permission.scopes.has(scope) {
        return Ok(());
    }
    Err(Error::new(Code::InsufficientScope, format!("this needs the scope {scope}")).with("scope", scope))
}

#[cfg(test)]
mod tests;

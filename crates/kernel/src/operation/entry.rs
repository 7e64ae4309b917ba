//! An operation with its types, and without them: how a request is bound to it, and what all of them together are.

use super::second_person::SaidOfSecondPerson;
use super::{Answer, Kind, Meta};
use crate::context::OperationContext;
use crate::error::{Code, Error, Result};
use crate::fence::{DeclaredKinds, Fences};
use crate::json;
use crate::manager::Manager;
use crate::text::Reason;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One ability of the product.
pub trait Operation: 'static {
    /// The declaration.
    const META: Meta;
    /// The path parameters behind the organization.
    type Path: DeserializeOwned + JsonSchema + Send + 'static;
    /// The query parameters.
    type Query: DeserializeOwned + JsonSchema + Send + 'static;
    /// The body without the mutation metadata `reason`, `idempotencyKey`, `confirm`.
    type Body: DeserializeOwned + JsonSchema + Send + 'static;
    /// The answer.
    type Output: Serialize + JsonSchema;

    /// Does it, inside one transaction.
    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Self::Output>;

    /// Checks again, before a stored answer is repeated, what may have changed about the caller's rights
    /// (D1.4 step 9).
    fn recheck(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<()> {
        Ok(())
    }

    /// Returns what others would lose by the act, as a member of the refusal of a call without `confirm: true`
    /// ([`Meta::weighed`]).
    fn weigh(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        Ok(None)
    }

    /// Says whether the act is one that its words name: of an operation that does several things, some requests are none.
    fn is_of_two(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<bool> {
        Ok(true)
    }

    /// Says whether the act decides who may say yes for a second person, or by what; asked of operations that are declared to
    /// ([`Meta::of_deciders`]).
    fn touches_deciders(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<bool> {
        Ok(true)
    }

    /// Returns what of the store a second person's yes is a yes to, beside the request: where it is another one, so is the request.
    fn standing(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<Value> {
        Ok(Value::Null)
    }

    /// Returns the ids of the users and accounts that get something by the act, beside those whom its path and its body name: neither they
    /// nor who stands behind them say yes to it.
    fn gains(_cx: &mut OperationContext<'_>, _input: &Input<Self>) -> Result<Vec<String>> {
        Ok(Vec::new())
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

/// A decoded call, bound to its operation.
pub trait BoundCall: Send {
    /// Runs the operation.
    fn call(&self, ctx: &mut OperationContext<'_>) -> Result<Answer>;

    /// See [`Operation::recheck`].
    fn recheck(&self, ctx: &mut OperationContext<'_>) -> Result<()>;

    /// See [`Operation::is_of_two`].
    fn is_of_two(&self, ctx: &mut OperationContext<'_>) -> Result<bool>;

    /// See [`Operation::touches_deciders`].
    fn touches_deciders(&self, ctx: &mut OperationContext<'_>) -> Result<bool>;

    /// See [`Operation::standing`].
    fn standing(&self, ctx: &mut OperationContext<'_>) -> Result<Value>;

    /// See [`Operation::gains`].
    fn gains(&self, ctx: &mut OperationContext<'_>) -> Result<Vec<String>>;

    /// The reason, if one was given.
    fn reason(&self) -> Option<&str>;
}

impl<O: Operation> BoundCall for Input<O> {
    fn call(&self, ctx: &mut OperationContext<'_>) -> Result<Answer> {
        if O::META.confirm && !self.confirm {
            let refusal = unconfirmed();
            return Err(match O::weigh(ctx, self)? {
                Some((member, value)) => refusal.with(member, value),
                None => refusal,
            });
        }
        let output = O::call(ctx, self)?;
        let status = ctx.taken_status().unwrap_or(O::META.status);
        let body = if matches!(status, 204 | 304) || ctx.answers_later() {
            Bytes::new()
        } else {
            Bytes::from(ctx.encode(&output, O::META.produces)?)
        };
        let headers = ctx.take_headers();
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

    fn recheck(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        O::recheck(ctx, self)
    }

    fn is_of_two(&self, ctx: &mut OperationContext<'_>) -> Result<bool> {
        O::is_of_two(ctx, self)
    }

    fn touches_deciders(&self, ctx: &mut OperationContext<'_>) -> Result<bool> {
        O::touches_deciders(ctx, self)
    }

    fn standing(&self, ctx: &mut OperationContext<'_>) -> Result<Value> {
        O::standing(ctx, self)
    }

    fn gains(&self, ctx: &mut OperationContext<'_>) -> Result<Vec<String>> {
        O::gains(ctx, self)
    }

    fn reason(&self) -> Option<&str> {
        self.reason.as_ref().map(Reason::as_str)
    }
}

/// Returns the refusal of an act that nothing can undo and that was not confirmed.
pub(crate) fn unconfirmed() -> Error {
    let message = "this cannot be undone: say so with confirm: true (or the header X-Confirm: true)";
    Error::new(Code::ConfirmationRequired, message)
}

/// The undecoded parts of a call.
pub struct Raw {
    /// Path parameters, by name.
    pub path: Value,
    /// Query parameters, by name.
    pub query: Value,
    /// The body without the mutation metadata.
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

fn bind<O: Operation>(raw: Raw) -> Result<Box<dyn BoundCall>> {
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

/// Returns the schema of an operation's query, with what it says of a second person where one may be wanted.
fn query_schema<O: Operation>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = O::Query::json_schema(generator);
    if O::META.second_person.is_none() {
        return schema;
    }
    let said = SaidOfSecondPerson::json_schema(generator);
    let said = said.get("properties").cloned().unwrap_or_default();
    let members = schema
        .ensure_object()
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let (Some(members), Value::Object(said)) = (members.as_object_mut(), said) {
        members.extend(said);
    }
    schema
}

/// One operation without its types.
#[derive(Clone)]
pub struct Entry {
    /// The declaration.
    pub meta: &'static Meta,
    /// Decodes a call.
    pub bind: fn(Raw) -> Result<Box<dyn BoundCall>>,
    /// The schemas of path, query, body and output.
    pub schemas: [SchemaOf; 4],
    /// The names of the query parameters.
    pub query_names: Vec<String>,
    /// LIMIT: characters of query parameters whose schema says how many, by their names.
    pub query_lengths: Vec<(String, usize)>,
    /// Whether the body has members beside the mutation metadata, or the mutation metadata itself.
    pub has_body: bool,
}

impl Entry {
    /// Returns the entry of an operation.
    pub fn of<O: Operation>() -> Self {
        let mut generator = SchemaGenerator::default();
        let query = query_schema::<O>(&mut generator);
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
                query_schema::<O>,
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
    fences: DeclaredKinds,
    answers: &'static str,
}

impl Registry {
    /// Returns a registry without operations, with examples of the answers of those to come: an object by their ids.
    #[must_use]
    pub fn answering(answers: &'static str) -> Self {
        Self {
            answers,
            ..Self::default()
        }
    }

    /// Returns the examples of answers, by the ids of operations. A test makes them and reads each.
    pub fn answers(&self) -> Map<String, Value> {
        serde_json::from_str(self.answers).unwrap_or_default()
    }

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
    pub fn fences(&self) -> &DeclaredKinds {
        &self.fences
    }

    /// Returns the operation of this id.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.meta.id == id)
    }
}

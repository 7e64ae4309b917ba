//! Takes events of the past, a body of JSON Lines at a time (D9.11).
//!
//! Keeps HS-5.

use super::incoming::IncomingEvent;
use super::model::{DAY_MS, NewEvent, Provenance};
use super::recorder::{ChunkMetrics, encode};
use super::store::{self, NewChunk};
use super::{order, resolve, retention_days};
use bytes::Bytes;
use provost_areas_identity::words;
use provost_kernel::auth::OrganizationId;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Content, Empty, Input, Meta, Operation, RateClass};
use provost_kernel::text::Name;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

// LIMIT: D9.11, D1.10.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_LINES: usize = 5_000;
const MAX_LINE_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 64;
const MAX_REFUSALS: usize = 100;
/// How far ahead of ours the clock of a source may be.
const AHEAD_MS: i64 = 5 * 60 * 1_000;
/// How many bodies are read at a time; the others wait.
const AT_A_TIME: usize = 2;

pub struct Import;

/// Where the events come from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ImportQuery {
    /// A name for where the events come from; the same body is imported once under it. Names of the server's own are
    /// refused: decisions, otlp, and what begins with device, in any spelling.
    source: Name,
}

/// The lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ImportBody {
    #[serde(skip)]
    content: Bytes,
}

/// A line that was not imported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
struct RefusedLine {
    /// Its number in the body; the first line is 1.
    line: i64,
    /// What of it, as a JSON Pointer; empty for the line itself.
    path: String,
    /// What is wrong.
    message: String,
}

/// What came of the import.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ImportOutcome {
    /// As given.
    source: String,
    /// SHA-256 of the body, in hexadecimal.
    sha256: String,
    /// How many lines the body has, blank ones left out.
    lines: usize,
    /// How many events were recorded.
    accepted: usize,
    /// How many lines were not.
    refused: usize,
    /// The body was imported before, and nothing was recorded now.
    duplicate: bool,
    /// The first refused lines.
    #[schemars(extend("maxItems" = 100))]
    refusals: Vec<RefusedLine>,
    /// When the oldest event happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_event_at: Option<Timestamp>,
    /// When the newest event happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event_at: Option<Timestamp>,
}

impl Operation for Import {
    const META: Meta = Meta::ingest(
        "importHeadlessPolicyHistory",
        "/policies/history/import",
        "policies",
    )
    .access("policies:import_history", &[Admin])
    .consumes(&["application/x-ndjson", "application/jsonl"], MAX_BYTES, 120)
    .rate(RateClass::Resolve)
    .command("history", "import-chunk").columns(&["line", "path", "message"])
    .says(
        "Import recorded events",
        "At most 32 MiB, 5000 lines and 65536 bytes a line. A line is {\"at\",\"occasion\",\"attributes\",\"id\"?,\"missing\"?, \
         \"session\"?,\"callId\"?,\"decision\"?:{\"action\",\"policyIds\"?,\"mode\"?}}. A line that is wrong, older than the \
         retention or more than five minutes ahead is counted, listed with its number (the first 100) and left out; the rest \
         is kept. Events of one instant keep the order of lines, and of bodies as they were sent. The answer comes after the \
         commit. The same body under the same source is imported once; a repeat is answered as the first time, with \
         duplicate. Each event says that it was imported and by whom; one audit entry for each principal, source and hour \
         names the bodies. Live conditions on the past do not count imported events, unless the setting \
         history.countImports is true.",
    );
    type Path = Empty;
    type Query = ImportQuery;
    type Body = ImportBody;
    type Output = ImportOutcome;

    fn read_content(content: Content) -> Result<ImportBody> {
        Ok(ImportBody {
            content: content.bytes,
        })
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ImportOutcome> {
        let org = ctx.org();
        let now = ctx.now();
        let days = retention_days(&mut ctx.tx(), org, now)?;
        let body = Body {
            organization: ctx.organization().clone(),
            from: Provenance::imported(&input.query.source, ctx.actor())?,
            content: input.body.content.clone(),
            oldest: ctx.now().as_ms() - days * DAY_MS,
            newest: ctx.now().as_ms() + AHEAD_MS,
            now: ctx.now(),
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move { import(kernel, body).await }))
    }
}

struct Turns(Semaphore);

struct Body {
    organization: OrganizationId,
    from: Provenance,
    content: Bytes,
    oldest: i64,
    newest: i64,
    now: Timestamp,
}

async fn import(kernel: Arc<Kernel>, body: Body) -> Result<ImportOutcome> {
    let turns = kernel.own(|| Turns(Semaphore::new(AT_A_TIME)));
    let turn = turns.0.acquire().await.map_err(Error::internal)?;
    let (shared, organization) = (kernel.clone(), body.organization.clone());
    let principal = body.from.principal.clone();
    let read = kernel.blocking(move || read(&shared, &body));
    let (imported, chunks) = match read.await?? {
        Read::Known(imported) => return Ok(imported),
        Read::New(imported, chunks) => (imported, chunks),
    };
    drop(turn);
    record(&kernel, organization, principal, imported, chunks).await
}

enum Read {
    /// It was imported before.
    Known(ImportOutcome),
    /// What to record.
    New(ImportOutcome, Vec<NewChunk>),
}

/// Reads a body. It blocks.
fn read(kernel: &Arc<Kernel>, body: &Body) -> Result<Read> {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &body.content);
    let mut imported = ImportOutcome {
        source: body.from.source.clone(),
        sha256: provost_kernel::audit::hex(digest.as_ref()),
        ..ImportOutcome::default()
    };
    let (org, source, sha256) = (
        body.organization.clone(),
        body.from.source.clone(),
        imported.sha256.clone(),
    );
    let known = kernel.read_blocking(move |tx| store::import(tx, org.as_str(), &source, &sha256))?;
    if let Some(outcome) = known {
        return Ok(Read::Known(repeated(&outcome)?));
    }
    let lines: Vec<(i64, &[u8])> = (1..)
        .zip(body.content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return Err(Error::invalid("", "the body holds no line"));
    }
    if lines.len() > MAX_LINES {
        let message = format!("the body holds more than {MAX_LINES} lines; send smaller ones");
        return Err(Error::invalid("", message));
    }
    imported.lines = lines.len();
    let mut taken = Vec::with_capacity(lines.len());
    let mut events = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        match parse(line, body) {
            Ok((at, event)) => {
                taken.push((number, at));
                events.push(event);
            }
            Err((path, message)) => imported.refuse(number, path, message),
        }
    }
    let (org, asked, now) = (body.organization.clone(), resolve::asked(&events), body.now);
    let (register, committed) = kernel.read_blocking(move |tx| {
        let register = words::register(tx, org.as_str(), &asked, now)?;
        Ok((register, order::committed(tx, org.as_str())?))
    })?;
    resolve::apply(&register, &mut events);
    // Lines keep their order, and come behind what was there when the body came (HS-9).
    let mut sequence = order::accept_behind(kernel, &body.organization, committed, events.len())?;
    let mut recorded: Vec<NewEvent> = Vec::with_capacity(events.len());
    for ((number, at), event) in taken.into_iter().zip(&events) {
        match event.event(&sequence.id(at)?, at, &body.from) {
            Ok(event) => recorded.push(event),
            Err(faults) => {
                let (path, message) = faults.into_iter().next().unwrap_or_default();
                imported.refuse(number, path, message);
            }
        }
    }
    imported.refusals.sort_by_key(|refused| refused.line);
    imported.refusals.truncate(MAX_REFUSALS);
    imported.accepted = recorded.len();
    let instants = recorded.iter().map(|event| event.record.at_ms);
    imported.first_event_at = instants.clone().min().map(Timestamp::from_ms);
    imported.last_event_at = instants.max().map(Timestamp::from_ms);
    let chunks = encode(kernel, &recorded)?;
    Ok(Read::New(imported, chunks))
}

/// Returns the event of a line and its instant, or what is wrong with the line.
fn parse(line: &[u8], body: &Body) -> std::result::Result<(i64, IncomingEvent), (String, String)> {
    if line.len() > MAX_LINE_BYTES {
        return Err((String::new(), "has more than 65536 bytes".into()));
    }
    let value = json::parse(line, MAX_DEPTH).map_err(|error| {
        let message = error.message().replacen("the body ", "the line ", 1);
        (String::new(), message)
    })?;
    let event = IncomingEvent::take(value).map_err(|faults| faults.into_iter().next().unwrap_or_default())?;
    // What the history has no place for is refused, and not lost without a word.
    for (pointer, is_there) in [
        ("/folder", event.folder.is_some()),
        ("/host", event.host.is_some()),
    ] {
        if is_there {
            return Err((pointer.into(), "is of events that are decided about alone".into()));
        }
    }
    let Some(at) = event.at_ms else {
        return Err(("/at".into(), "is missing".into()));
    };
    if at < body.oldest {
        return Err(("/at".into(), "is older than events are kept".into()));
    }
    if at > body.newest {
        return Err(("/at".into(), "is more than five minutes ahead".into()));
    }
    Ok((at, event))
}

impl ImportOutcome {
    fn refuse(&mut self, line: i64, path: String, message: String) {
        self.refused += 1;
        self.refusals.push(RefusedLine { line, path, message });
    }
}

fn repeated(outcome: &str) -> Result<ImportOutcome> {
    let mut imported: ImportOutcome = serde_json::from_str(outcome).map_err(Error::internal)?;
    imported.duplicate = true;
    Ok(imported)
}

/// Stores the chunks and the identity of the body in one unit of work (HS-5).
async fn record(
    kernel: &Arc<Kernel>,
    organization: OrganizationId,
    principal: String,
    imported: ImportOutcome,
    chunks: Vec<NewChunk>,
) -> Result<ImportOutcome> {
    let told = ChunkMetrics::of(&chunks);
    let outcome = serde_json::to_string(&imported).map_err(Error::internal)?;
    let earlier: Arc<Mutex<Option<String>>> = Arc::default();
    let sink = earlier.clone();
    let (source, sha256) = (imported.source.clone(), imported.sha256.clone());
    let counts = [imported.lines, imported.accepted, imported.refused].map(store::size);
    let run = move |ctx: &mut OperationContext<'_>| {
        let mut found = None;
        if store::add_import(ctx, &source, &sha256, &outcome, &principal, counts)? {
            chunks.iter().try_for_each(|chunk| store::add_chunk(ctx, chunk))?;
        } else {
            let org = ctx.org();
            found = store::import(&mut ctx.tx(), org, &source, &sha256)?;
        }
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    };
    kernel.system(organization, None, run).await?;
    let earlier = earlier.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(outcome) = earlier {
        return repeated(&outcome);
    }
    told.count();
    Ok(imported)
}

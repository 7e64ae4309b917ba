//! `POST …/devices/{deviceId}/decisions`
//!
//! Keeps DJ-3, DJ-4, DJ-6, DJ-10.

use super::entries::{Entry, EntryText, Follows, Place, Told, ToldEvent};
use super::room::Used;
use super::store::{self, CountKey, Sums};
use super::taking::Taking;
use super::{again, bundle};
use crate::history::{self, DAY_MS, IncomingEvent, NewEvent, Provenance};
use provost_areas_fleet::fleet::{self, BypassId, DeviceId, DevicePath, People, Standing};
use provost_areas_identity::words::Kind;
use provost_areas_platform::settings;
use provost_bundle::ToldContent;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::rate::Bucket;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use provost_policy::{Field, Register, SentAttributes};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// LIMIT: bytes of a request (F4.10).
const MAX_BYTES: usize = 4 << 20;
/// LIMIT: levels of a request: entries are texts.
const LEVELS: usize = 4;
/// LIMIT: entries of a request (F4.10).
const ENTRIES: usize = 1_000;
/// LIMIT: requests of one device. Ours: one that was away for a week has told all of it within an hour.
const REPORTS: Bucket = Bucket {
    name: "device-decisions",
    burst: 60,
    per_second_num: 720,
    per_second_den: 3600,
};
/// An hour. Units: milliseconds.
const HOUR_MS: i64 = 3_600_000;

pub struct ReportDecisions;

/// What a device judged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ReportBody {
    /// The number of the first entry; the first one of a device is 1.
    from: IntegerBetween<1, 9_007_199_254_740_991>,
    /// The hash of the entry before the first; before the first one of all, 64 zeros.
    previous: Hash,
    /// The hash of the last entry.
    head: Hash,
    /// 1 to 1000 entries, each the text of a JSON object with a kind: `event`, `count` or `dropped`. The hash of an entry is the SHA-256 of
    /// the hash before it, as 64 hexadecimal digits, and of its text.
    entries: Entries,
}

/// A hash of the chain: 64 hexadecimal digits in lower case.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Hash(String);

impl TryFrom<String> for Hash {
    type Error = &'static str;
    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 64 && text.bytes().all(is_digit) {
            return Ok(Self(text));
        }
        Err("must be 64 hexadecimal digits in lower case")
    }
}

impl JsonSchema for Hash {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Hash".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

/// The texts of entries. LIMIT: 1 to 1000.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
struct Entries(Vec<String>);

impl TryFrom<Vec<String>> for Entries {
    type Error = &'static str;
    fn try_from(entries: Vec<String>) -> std::result::Result<Self, Self::Error> {
        if (1..=ENTRIES).contains(&entries.len()) {
            return Ok(Self(entries));
        }
        Err("must hold 1 to 1000 entries")
    }
}

impl JsonSchema for Entries {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Entries".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": ENTRIES })
    }
}

/// An entry that is not kept.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct RefusedEntry {
    /// Its number.
    entry: i64,
    /// What of it, as a JSON Pointer; empty for the entry itself.
    path: String,
    /// What is wrong.
    message: String,
}

/// What became of entries.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ReportAnswer {
    /// How many were taken now; none where all were taken before.
    pub(super) accepted: usize,
    /// The number of the entry that comes next: the device keeps none before it any more.
    pub(super) expected: i64,
    /// The hash of the entry before that.
    pub(super) head: String,
    /// Entries that could not be read: they are counted, and not asked for again.
    pub(super) refused: Vec<RefusedEntry>,
    /// The numbers of events that named anybody but the device's own people: they are kept as events of nobody who is known.
    pub(super) foreign: Vec<i64>,
}

impl Operation for ReportDecisions {
    const META: Meta = Meta::ingest(
        "reportHeadlessDeviceDecisions",
        "/devices/{deviceId}/decisions",
        "fleet",
    )
    .rule(Access::OfKind {
        kind: fleet::DEVICE_KIND,
        parameter: "deviceId",
    })
    .errors(&[400, 401, 403, 404])
    .reads_up_to(MAX_BYTES, LEVELS)
    .example(
        r#"{"from": 1, "previous": "0000000000000000000000000000000000000000000000000000000000000000",
            "head": "a8ff751c323490a7114e90f544dc481729da1f773f8a266a32bfffe08babaffe", "entries": ["{\"kind\":\"dropped\",\"events\":3,\"why\":\"queue_full\"}"]}"#,
    )
    .says(
        "Report what a device judged",
        "A device calls this for itself. Entries are a chain: what does not follow the last one that was taken is refused with 409, and expected \
         and head say from where on to go on. What was taken already is answered as taken. A device tells so much \
         a day (429, status day_is_full): the first entries that have room are taken, and what was refused or asked an approval for has room \
         of its own. Events are kept in the history under the source \
         device:<id>, with the decision as the device says it; they count in conditions on the past where they make a verdict stronger, and give \
         nobody anything. An entry that cannot be read is named in the answer and not asked for again.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = ReportBody;
    type Output = ReportAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ReportAnswer> {
        let (id, body) = (&input.path.device_id, &input.body);
        let org = ctx.org();
        ctx.limit(&REPORTS, &[org, id.as_str()])?;
        may_tell(ctx, id)?;
        let chain = store::chain(ctx, id)?;
        must_have_begun(ctx, chain.as_ref())?;
        let told = Told {
            from: body.from.get(),
            previous: &body.previous.0,
            entries: &body.entries.0,
        };
        let hashes = told.hashes();
        if hashes.last() != Some(&body.head.0) {
            let message = "is not the hash of the last entry behind previous: SHA-256 of the hash before it and of its text";
            return Err(Error::unfit("/head", message));
        }
        let used = chain.as_ref().map_or_else(Used::default, |chain| chain.used);
        let place = chain.map_or_else(Place::first, |chain| chain.place);
        let known = match told.follow(&place, &hashes) {
            Follows::Behind(known) => known,
            Follows::Gap => return Err(refusal("gap", &place)),
            Follows::Fork => return Err(refusal("fork", &place)),
        };
        let new = told.entries.get(known..).unwrap_or_default();
        if new.is_empty() {
            return Ok(ReportAnswer {
                expected: place.next,
                head: place.head,
                ..ReportAnswer::default()
            });
        }
        let mut entries: Vec<EntryText> = Vec::with_capacity(new.len());
        entries.extend(new.iter().map(|text| EntryText::of(text)));
        let now = ctx.now();
        let (fit, used) = used.on(now).with(&entries);
        let new_hashes = hashes.get(known..known + fit).unwrap_or_default();
        let Some(head) = new_hashes.last().cloned() else {
            return Err(has_told_enough(&place, used.wait_secs(now)));
        };
        entries.truncate(fit);
        let after = Place {
            next: place.next.saturating_add(i64::try_from(fit).unwrap_or(i64::MAX)),
            head,
        };
        let batch = Batch::read(ctx, id, place.next, entries)?;
        let again = again::sample(ctx, id, &batch, new_hashes)?;
        let taking: history::EventId = ctx.new_id();
        let taking = Taking {
            organization: ctx.organization().clone(),
            device: id.clone(),
            places: [place, after],
            mark: taking.as_str().to_owned(),
            accepted: fit,
            used,
            batch,
            again,
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(taking.keep(kernel)))
    }
}

/// Returns the refusal of what does not follow, with the place from which to go on.
pub(super) fn refusal(status: &'static str, place: &Place) -> Error {
    metrics::counter!("provost_device_decisions_refused_total", "why" => status).increment(1);
    let message = match status {
        "gap" => {
            "entries between were never taken; send again from `expected` on, or chain what is left anew behind `head`"
        }
        _ => {
            "other entries were taken in this place; go on behind `head` where that is an entry of this device's own, and else chain what is left \
             anew behind it"
        }
    };
    Error::new(Code::Conflict, message)
        .with("status", status)
        .with("expected", place.next)
        .with("head", place.head.as_str())
}

/// Returns the refusal of more than a day has room for.
fn has_told_enough(place: &Place, wait_secs: u32) -> Error {
    metrics::counter!("provost_device_decisions_refused_total", "why" => "day_is_full").increment(1);
    let message = "this device has told as much as it may within a day; keep what is left, and send it again when the day is over: what was \
                   refused, or asked an approval for, is taken before that, if it comes first";
    Error::new(Code::RateLimited, message)
        .with("status", "day_is_full")
        .with("expected", place.next)
        .with("head", place.head.as_str())
        .retry_after(wait_secs)
}

/// Refuses a device that may not tell anything.
pub(super) fn may_tell(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    match fleet::standing(ctx, id)? {
        Standing::Ended => Err(provost_kernel::credential::invalid_token()),
        Standing::Waits => {
            let message = "the device is not active yet: it has to be heard of, and to be approved where that is asked for";
            Err(Error::new(Code::Conflict, message).with("status", "pending"))
        }
        Standing::Works => Ok(()),
    }
}

/// Refuses to begin where no device judges; what was judged before that may be told to its end.
///
/// Keeps DJ-7.
pub(super) fn must_have_begun(ctx: &mut OperationContext<'_>, chain: Option<&store::Chain>) -> Result<()> {
    match chain {
        Some(_) => Ok(()),
        None => bundle::must_be_on(ctx),
    }
}

/// What entries say, ready to be written.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events, in their order.
    pub events: Vec<NewEvent>,
    /// For each event, the place of its entry, and whether it can be judged again.
    pub places: Vec<(usize, bool)>,
    /// The key of the MCP server of each event, where somebody says it.
    pub servers: Vec<Option<String>>,
    /// How often something passed.
    pub counts: BTreeMap<CountKey, i64>,
    /// How much it is.
    pub sums: Sums,
    pub refused: Vec<RefusedEntry>,
    pub foreign: Vec<i64>,
    /// What the words of the events mean.
    pub register: Arc<Register>,
}

impl Batch {
    /// Reads entries, of which the first has this number.
    fn read(
        ctx: &mut OperationContext<'_>,
        device: &DeviceId,
        first: i64,
        entries: Vec<EntryText>,
    ) -> Result<Self> {
        let people = fleet::people(ctx, device)?;
        let times = Times::of(ctx, &people)?;
        let org = ctx.org();
        let kept = bundle::told(settings::of(&mut ctx.tx(), org)?.fleet.privacy);
        let number = |at: usize| first.saturating_add(i64::try_from(at).unwrap_or(i64::MAX));
        let mut batch = Self::default();
        let mut told: Vec<(usize, ToldEvent)> = Vec::new();
        let mut counts = Vec::new();
        for (at, entry) in entries.into_iter().enumerate() {
            match entry.said {
                Ok(Entry::Event(mut event)) => {
                    withhold(kept, &mut event);
                    told.push((at, *event));
                }
                Ok(Entry::Count(count)) => counts.push(count),
                Ok(Entry::Dropped(events)) => batch.sums.dropped += events,
                Err((path, message)) => batch.refuse(number(at), path, message),
            }
        }
        let mut events: Vec<IncomingEvent> = Vec::with_capacity(told.len());
        events.extend(told.iter().map(|(_, told)| told.event.clone()));
        // The words of counts are looked at as those of events.
        let asked_by_counts = counts.iter().map(|count| {
            let mut event = IncomingEvent::new(provost_policy::Occasion::PreTool);
            if let Some(user) = &count.user {
                let name = Field::USER.name().to_owned();
                event.attributes.insert(name, user.as_str().into());
            }
            event
        });
        let own = events.len();
        events.extend(asked_by_counts);
        let words: Vec<[Option<String>; 2]> = events.iter().map(words).collect();
        batch.register = Arc::new(history::resolve(ctx, &mut events)?);
        let of_counts = words.get(own..).unwrap_or_default();
        for (count, [user, _]) in counts.iter().zip(of_counts) {
            let user = user.as_deref().unwrap_or_default();
            let key = CountKey {
                hour: times.hour(count.minute),
                user: batch.named(&people, user),
                client: count.client.as_str().to_owned(),
                tool: count.tool.as_ref().map_or("", |tool| tool.as_str()).to_owned(),
            };
            *batch.counts.entry(key).or_default() += count.passed;
            batch.sums.passed += count.passed;
        }
        batch.sums.mismatches += unproven(ctx, device, &told)?;
        let from = Provenance::of_device(device.as_str(), ctx.actor());
        let mut sequence = history::accept(ctx, told.len())?;
        for (((at, told), event), words) in told.iter().zip(&mut events).zip(&words) {
            let is_foreign = batch.is_foreign(&people, words);
            if is_foreign {
                leave_open(event);
            }
            name_device(event, device);
            let at_ms = times.instant(told.at);
            let event_server = event.mcp_package().map(str::to_owned);
            match event.event(&sequence.id(at_ms)?, at_ms, &from) {
                Ok(event) => {
                    let is_certain = told.whole && told.basis == super::entries::Basis::Judged;
                    batch.events.push(event);
                    batch.places.push((*at, is_certain && !is_foreign));
                    batch.servers.push(event_server);
                    batch.sums.events += 1;
                    if is_foreign {
                        batch.foreign.push(number(*at));
                        batch.sums.foreign += 1;
                    }
                }
                Err(faults) => {
                    let (path, message) = faults.into_iter().next().unwrap_or_default();
                    batch.refuse(number(*at), path, message);
                }
            }
        }
        batch.refused.sort_by_key(|refused| refused.entry);
        Ok(batch)
    }

    fn refuse(&mut self, entry: i64, path: String, message: String) {
        self.sums.refused += 1;
        self.refused.push(RefusedEntry { entry, path, message });
    }

    /// Says whether an event names anybody but the people of the device: somebody else, one who may be somebody else, or a word that
    /// nobody has and that somebody may be given later.
    ///
    /// Keeps DJ-4.
    fn is_foreign(&self, people: &People, [user, account]: &[Option<String>; 2]) -> bool {
        let is_other = |field: Field, word: &Option<String>, own: &Option<String>| {
            word.as_ref()
                .is_some_and(|word| !self.means(field, word, own.as_deref()))
        };
        is_other(Field::USER, user, &people.owner)
            || is_other(Field::SERVICE_ACCOUNT, account, &people.account)
    }

    /// Says whether a word means one record and nothing else.
    fn means(&self, field: Field, word: &str, own: Option<&str>) -> bool {
        match self.register.meant(field, word) {
            [one] => Some(one.id()) == own,
            _ => false,
        }
    }

    /// Returns under whose name a count is kept: the id of the device's own user, or nobody's.
    ///
    /// Keeps DJ-4.
    fn named(&self, people: &People, word: &str) -> String {
        let own = people.owner.as_deref();
        let own = own.filter(|own| self.means(Field::USER, word, Some(own)));
        own.unwrap_or_default().to_owned()
    }
}

/// Takes out of an event what devices of the organization do not tell: one that judges by an earlier bundle, or that is of a version that does
/// not know of it, tells more. What is left is not what was judged.
///
/// Keeps DJ-10.
fn withhold(kept: ToldContent, told: &mut ToldEvent) {
    let held = kept.withhold(SentAttributes {
        given: &mut told.event.attributes,
        missing: &mut told.event.missing,
    });
    told.whole &= held.is_empty();
}

/// LIMIT: bypasses that are looked up for a request. Ours: a device has one at a time.
const MOST_BYPASSES: usize = 8;

/// Returns how many events passed by a bypass, by the device's word, that nobody gave it then: the device lets pass what it should not, or says so.
fn unproven(ctx: &mut OperationContext<'_>, device: &DeviceId, told: &[(usize, ToldEvent)]) -> Result<i64> {
    let mut known: BTreeMap<BypassId, Option<fleet::Bypass>> = BTreeMap::new();
    let mut unproven = 0;
    for (_, told) in told {
        let Some(id) = &told.bypass else { continue };
        if !known.contains_key(id) && known.len() < MOST_BYPASSES {
            known.insert(id.clone(), fleet::bypass_of(ctx, device, id)?);
        }
        let given = known.get(id).and_then(Option::as_ref);
        if !given.is_some_and(|bypass| bypass.may_have_been_live(told.at)) {
            unproven += 1;
        }
    }
    Ok(unproven)
}

/// Returns the words by which an event names a user and an account.
fn words(event: &IncomingEvent) -> [Option<String>; 2] {
    [Kind::User, Kind::ServiceAccount].map(|kind| event.words(kind).next().map(str::to_owned))
}

/// Has an event be of nobody who is known: nobody's past but the device's owner's is told by it.
fn leave_open(event: &mut IncomingEvent) {
    let named = |field: Field| event.attributes.contains_key(field.name());
    let open: Vec<Field> = [Field::USER, Field::SERVICE_ACCOUNT]
        .into_iter()
        .filter(|field| named(*field))
        .collect();
    let mut sent = SentAttributes {
        given: &mut event.attributes,
        missing: &mut event.missing,
    };
    for field in open {
        sent.miss(field);
    }
    sent.miss(Field::GROUPS);
}

/// Has an event that names a machine name this one.
fn name_device(event: &mut IncomingEvent, device: &DeviceId) {
    let name = Field::DEVICE.name();
    let is_missing = event.missing.iter().any(|missing| missing == name);
    if is_missing || event.attributes.contains_key(name) {
        event.missing.retain(|missing| missing != name);
        event.attributes.insert(name.to_owned(), device.as_str().into());
    }
}

/// Between which instants events of a device lie.
#[derive(Clone, Copy, Debug)]
struct Times {
    first: i64,
    last: i64,
}

impl Times {
    fn of(ctx: &mut OperationContext<'_>, people: &People) -> Result<Self> {
        let (org, now) = (ctx.org(), ctx.now());
        let days = history::retention_days(&mut ctx.tx(), org, now)?;
        let last = now.as_ms();
        Ok(Self {
            first: people.enrolled_at.as_ms().max(last - days * DAY_MS).min(last),
            last,
        })
    }

    /// Returns when something happened: a device's clock counts from its enrolment until now.
    fn instant(self, at: Timestamp) -> i64 {
        at.as_ms().clamp(self.first, self.last)
    }

    /// Returns the hour in which something happened, of those whose counts are kept.
    fn hour(self, at: Timestamp) -> Timestamp {
        let first = self.first.max(self.last - store::KEPT_SECS * 1_000);
        let at = at.as_ms().clamp(first, self.last);
        Timestamp::from_ms(at.div_euclid(HOUR_MS) * HOUR_MS)
    }
}

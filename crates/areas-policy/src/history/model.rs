//! Words and numbers of the history, pure.

use super::order::{MARK_BITS, NUMBER_BITS};
use provost_backtest::record::{self, Attribute, DECISIONS, OTLP, OwnedRecord};
use provost_kernel::auth::Actor;
use provost_kernel::auth::Role::{self, Admin, Auditor, Operator};
use provost_kernel::id::TypedId;
use provost_kernel::text::Name;
use provost_kernel::{Error, Result, Timestamp, id};
use provost_policy::{Field, match_key};

id!(EventId, "hev", "A recorded event.");
id!(ChunkId, "hch", "A chunk of recorded events.");
id!(SegmentId, "hsg", "A sealed segment of recorded events.");

/// The roles that may read what was decided.
pub(crate) const READERS: &[Role] = &[Admin, Operator, Auditor];
/// The roles that may read an event with all its attributes.
pub(crate) const INSPECTORS: &[Role] = &[Admin, Auditor];

/// What the names of sources begin with that machines send from themselves.
const DEVICE: &str = "device";

/// A ULID is 48 bits of time and 80 others.
const CHANCE_BITS: u32 = 80;
/// What the others begin with since they tell the order of acceptance: of ids made by chance hardly one does.
const ORDERED: u128 = (1 << (CHANCE_BITS - NUMBER_BITS - MARK_BITS)) - 1;

/// Milliseconds in a day.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// An event as it was judged, with or without a decision.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The id; given by a [`super::Sequence`] with the event's instant (HS-8, HS-9).
    pub id: String,
    /// What is known of it.
    pub record: OwnedRecord,
}

/// Where events come from; it stands with each of them.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The name under which they come.
    pub(super) source: String,
    /// The principal that hands them in.
    pub(super) principal: String,
    /// Whether somebody tells of them, and this server did not see them.
    pub(super) is_imported: bool,
}

impl Provenance {
    /// Returns that of what this server decides, or is told by the exporters of agents, under a name of its own.
    pub fn own(source: &'static str, actor: &Actor) -> Self {
        Self {
            source: source.to_owned(),
            principal: actor.id.clone(),
            is_imported: false,
        }
    }

    /// Returns that of what a device judged and tells of: under its own name, by nobody else's word.
    pub fn of_device(device_id: &str, actor: &Actor) -> Self {
        Self {
            source: record::device_source(device_id),
            principal: actor.id.clone(),
            is_imported: false,
        }
    }

    /// Returns that of an import.
    ///
    /// INVARIANT HS-10. Errors: `InvalidDefinition` for a name that could be taken for one of the server's own, however it
    /// is spelled.
    pub(super) fn imported(source: &Name, actor: &Actor) -> Result<Self> {
        let key = match_key(source.as_str());
        if key.is_empty() || [DECISIONS, OTLP].contains(&key.as_str()) || key.starts_with(DEVICE) {
            let message = "is a name of the server's own, or looks like one: decisions, otlp and everything that begins with \
                           device; choose another";
            return Err(Error::unfit("/query/source", message));
        }
        Ok(Self {
            source: source.as_str().to_owned(),
            principal: actor.id.clone(),
            is_imported: true,
        })
    }
}

impl EventId {
    /// Returns the id of an event that happened at this instant and was accepted under this number by a process with
    /// this mark (HS-9). Units: milliseconds since the Unix epoch.
    pub fn at(at_ms: i64, number: u64, mark: u32) -> Self {
        let number = u128::from(number) & ((1 << NUMBER_BITS) - 1);
        let mark = u128::from(mark) & ((1 << MARK_BITS) - 1);
        let low = ORDERED << (NUMBER_BITS + MARK_BITS) | number << MARK_BITS | mark;
        Self(id::compose(Self::PREFIX, Timestamp::from_ms(at_ms), low))
    }

    /// Returns the number under which the event was accepted; `None` for an id from before there were numbers.
    pub(super) fn number(text: &str) -> Option<i64> {
        let low = Self::place(text)? & ((1 << CHANCE_BITS) - 1);
        let is_ordered = low >> (NUMBER_BITS + MARK_BITS) == ORDERED;
        let number = (low >> MARK_BITS) & ((1 << NUMBER_BITS) - 1);
        i64::try_from(number).ok().filter(|_| is_ordered)
    }

    /// Returns the place of the event in the order of (instant, event id); `None` for the id of nothing.
    pub(super) fn place(text: &str) -> Option<u128> {
        id::parse(Self::PREFIX, text).map(|ulid| ulid.0)
    }
}

/// Returns the place before every event of an instant and of later ones.
pub(super) fn place_of_instant(at_ms: i64) -> u128 {
    u128::from(at_ms.max(0).unsigned_abs()) << CHANCE_BITS
}

/// Returns the instant of the place.
pub(super) fn instant_of_place(place: u128) -> i64 {
    i64::try_from(place >> CHANCE_BITS).unwrap_or(i64::MAX)
}

/// Returns whose event it is: the user's, else the service account's, else the device's; nobody's where one that
/// comes first is missing, because nobody can say whose it is then.
pub(crate) fn subject(event: &OwnedRecord) -> Option<(&'static str, &str)> {
    let kinds = [
        ("user", Field::USER),
        ("service_account", Field::SERVICE_ACCOUNT),
        ("device", Field::DEVICE),
    ];
    for (kind, field) in kinds {
        match text(event, field) {
            Some(id) => return Some((kind, id)),
            None if event.missing().contains(&field) => return None,
            None => {}
        }
    }
    None
}

/// Returns the tool of the event, by its own id or by the one it has at its MCP server.
pub(crate) fn tool(event: &OwnedRecord) -> Option<&str> {
    text(event, Field::TOOL).or_else(|| text(event, Field::MCP_TOOL))
}

/// Returns an attribute that is a text.
pub(crate) fn text(event: &OwnedRecord, field: Field) -> Option<&str> {
    match event.attribute(field)? {
        Attribute::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves HS-8.
    #[test]
    fn an_id_says_when_its_event_happened() {
        let at = 1_795_144_500_123;
        let event = EventId::at(at, 9, 4);
        let place = EventId::place(event.as_str()).unwrap();
        assert!(place_of_instant(at) <= place && place < place_of_instant(at + 1));
        assert_eq!(instant_of_place(place), at);
        assert_eq!(EventId::place("hev_no"), None);
        assert_eq!(EventId::number(event.as_str()), Some(9));
        let greatest = (1 << NUMBER_BITS) - 1;
        let last = EventId::at(at, greatest, u32::MAX);
        assert_eq!(EventId::number(last.as_str()), i64::try_from(greatest).ok());
        assert!(EventId::place(last.as_str()).unwrap() < place_of_instant(at + 1));
        let chance = id::compose(EventId::PREFIX, Timestamp::from_ms(at), 1 << 79);
        assert_eq!(EventId::number(&chance), None);
    }
}

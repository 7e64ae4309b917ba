//! Words and numbers of the history, pure.

use provost_kernel::auth::Role::{self, Admin, Auditor, Operator, Viewer};
use provost_kernel::entropy::UnitRng;
use provost_kernel::id::TypedId;
use provost_kernel::{Timestamp, id};
use provost_policy::Field;
use provost_replay::record::{Attribute, Owned};

id!(EventId, "hev", "A recorded event.");
id!(ChunkId, "hch", "A chunk of recorded events.");
id!(SegmentId, "hsg", "A sealed segment of recorded events.");

/// The roles that may read what was decided.
pub(super) const READERS: &[Role] = &[Admin, Operator, Auditor, Viewer];
/// The roles that may read an event with all its attributes.
pub(super) const INSPECTORS: &[Role] = &[Admin, Auditor];

/// Milliseconds in a day.
pub(super) const DAY_MS: i64 = 86_400_000;

/// An event as it was judged, with or without a decision.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The id; made by [`EventId::at`] with the event's instant (HS-8).
    pub id: String,
    /// What is known of it.
    pub record: Owned,
}

impl EventId {
    /// Returns a new id of an event that happened at this instant. Units: milliseconds since the Unix epoch.
    pub fn at(at_ms: i64, rng: &mut UnitRng) -> Self {
        Self::mint(Timestamp::from_ms(at_ms), rng)
    }

    /// Returns the place of the event in the order of (instant, event id); `None` for the id of nothing.
    pub(super) fn place(text: &str) -> Option<u128> {
        id::parse(Self::PREFIX, text).map(|ulid| ulid.0)
    }
}

/// Returns the place before every event of an instant and of later ones.
pub(super) fn place_of_instant(at_ms: i64) -> u128 {
    // A ULID is 48 bits of time and 80 of chance.
    u128::from(at_ms.max(0).unsigned_abs()) << 80
}

/// Returns the instant of the place.
pub(super) fn instant_of_place(place: u128) -> i64 {
    i64::try_from(place >> 80).unwrap_or(i64::MAX)
}

/// Returns whose event it is: the user's, else the service account's, else the device's; nobody's where one that
/// comes first is missing, because nobody can say whose it is then.
pub(super) fn subject(event: &Owned) -> Option<(&'static str, &str)> {
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
pub(super) fn tool(event: &Owned) -> Option<&str> {
    text(event, Field::TOOL).or_else(|| text(event, Field::MCP_TOOL))
}

/// Returns an attribute that is a text.
pub(super) fn text(event: &Owned, field: Field) -> Option<&str> {
    match event.attribute(field)? {
        Attribute::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_when_its_event_happened() {
        let at = 1_795_144_500_123;
        let event = EventId::at(at, &mut UnitRng::new([7; 32]));
        let place = EventId::place(event.as_str()).unwrap();
        assert!(place_of_instant(at) <= place && place < place_of_instant(at + 1));
        assert_eq!(instant_of_place(place), at);
        assert_eq!(EventId::place("hev_no"), None);
    }
}

//! An event as it is shown, and from where on events may be read.
//!
//! Keeps EV-2.

use provost_kernel::{Code, Error, Result, Timestamp, id};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

id!(
    EpochId,
    "epo",
    "A stretch of an organization's events in which each sequence means one event."
);

impl EpochId {
    /// Returns the epoch of every organization whose store never went back.
    fn first() -> Self {
        Self::from_store("epo_00000000000000000000000000".to_owned())
    }
}

/// An epoch that began because the store went back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub id: EpochId,
    /// The last sequence that it shares with the epochs before it.
    pub begins_after: i64,
}

/// How far the events of an organization go, and where their numbering began anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Feed {
    /// The number of events there ever were, whether or not the newest are still kept.
    pub counter: i64,
    /// The epochs behind the first one, in order.
    pub epochs: Vec<Epoch>,
}

impl Feed {
    /// Returns the epoch of now.
    pub(super) fn epoch(&self) -> EpochId {
        let last = self.epochs.last();
        last.map_or_else(EpochId::first, |epoch| epoch.id.clone())
    }

    /// Looks whether events can be read on from a sequence that was seen in an epoch (EV-2).
    ///
    /// Errors: `SequenceGone` with the sequence from which on nothing is missed.
    pub(super) fn admits(&self, after: i64, epoch: Option<&EpochId>) -> Result<()> {
        let same = epoch.is_none_or(|epoch| *epoch == self.epoch());
        let shared = self.shared(epoch);
        if after <= if same { self.counter } else { shared } {
            return Ok(());
        }
        let now = self.epoch();
        let message = format!(
            "there is nothing to go on with behind event {after}: no event has that number yet, or the store went back since \
             and others have its numbers; go on with after={shared} and epoch={now}, and drop what you have already by its id"
        );
        Err(Error::new(Code::SequenceGone, message)
            .with("nextAfter", shared)
            .with("epoch", now.as_str()))
    }

    /// Returns the last sequence that certainly means the same event to whoever read in that epoch, and here.
    fn shared(&self, epoch: Option<&EpochId>) -> i64 {
        let begins = |place: usize| self.epochs.get(place).map_or(0, |epoch| epoch.begins_after);
        let Some(epoch) = epoch else {
            // Somebody who says no epoch and was further than the counter read before one of the places: the first is the
            // one behind which nobody has missed anything.
            return begins(0);
        };
        if *epoch == self.epoch() {
            // Further than the counter in the epoch of now: the store went back, and nobody has said so yet.
            return self.epochs.last().map_or(0, |epoch| epoch.begins_after);
        }
        if *epoch == EpochId::first() {
            return begins(0);
        }
        let known = self.epochs.iter().position(|known| known.id == *epoch);
        // An epoch that a later restore gave up as a whole is not known here, nor is where it began.
        known.map_or(0, |place| begins(place + 1))
    }
}

/// One event, in the form in which webhooks carry it, with its id.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Event {
    /// The same at every delivery.
    pub id: String,
    /// For example `service_account.token.rotated`; more may come.
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: Timestamp,
    pub data: Data,
    /// The data are not for this reader: the sequence alone is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// What happened: ids and states, and the event's number in its organization.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Data(Map<String, Value>);

impl Data {
    /// Returns the stored members with the sequence.
    ///
    /// Errors: `Internal` when the stored text is no JSON object.
    pub(super) fn of(text: &str, sequence: i64) -> Result<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(text).map_err(Error::internal)?;
        members.insert("sequence".into(), sequence.into());
        Ok(Self(members))
    }

    /// Returns the sequence alone.
    pub(super) fn withheld(self) -> Self {
        let mut members = self.0;
        members.retain(|name, _| name == "sequence");
        Self(members)
    }

    /// Returns a member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl JsonSchema for Data {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "EventData".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "required": ["sequence"],
            "properties": { "sequence": { "type": "integer", "minimum": 1 } },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(letter: char) -> EpochId {
        EpochId::from_store(format!("epo_{}", letter.to_string().repeat(26)))
    }

    fn feed(counter: i64, epochs: &[(char, i64)]) -> Feed {
        let epochs = epochs.iter().map(|(letter, begins_after)| Epoch {
            id: epoch(*letter),
            begins_after: *begins_after,
        });
        Feed {
            counter,
            epochs: epochs.collect(),
        }
    }

    /// What is said of a sequence: none when it may be read on from, else where to go on.
    fn gone(feed: &Feed, after: i64, epoch: Option<&EpochId>) -> Option<i64> {
        let error = feed.admits(after, epoch).err()?;
        assert_eq!(error.code(), Code::SequenceGone);
        assert_eq!(error.member("epoch").unwrap(), feed.epoch().as_str());
        error.member("nextAfter").unwrap().as_i64()
    }

    /// Proves EV-2.
    #[test]
    fn a_sequence_is_gone_behind_the_counter_and_behind_where_its_epoch_parted() {
        let (first, a, b) = (EpochId::first(), epoch('a'), epoch('b'));
        let once = feed(7, &[]);
        let twice = feed(30, &[('a', 10), ('b', 20)]);
        for (feed, after, said, expected) in [
            // One epoch: only the counter counts, and the end itself is no mistake.
            (&once, 0, None, None),
            (&once, 7, None, None),
            (&once, 7, Some(&first), None),
            (&once, 8, None, Some(0)),
            (&once, 8, Some(&first), Some(0)),
            // A bare number means what it means now, as long as there was an event of that number.
            (&twice, 30, None, None),
            (&twice, 31, None, Some(10)),
            // Each epoch is shared up to where the next one begins.
            (&twice, 10, Some(&first), None),
            (&twice, 11, Some(&first), Some(10)),
            (&twice, 20, Some(&a), None),
            (&twice, 21, Some(&a), Some(20)),
            (&twice, 31, Some(&a), Some(20)),
            (&twice, 30, Some(&b), None),
            (&twice, 31, Some(&b), Some(20)),
            // Nobody knows what an unknown epoch shares.
            (&twice, 0, Some(&epoch('c')), None),
            (&twice, 1, Some(&epoch('c')), Some(0)),
        ] {
            assert_eq!(
                gone(feed, after, said),
                expected,
                "{after} in {said:?} of {feed:?}"
            );
        }
        assert_eq!(once.epoch(), first);
        assert_eq!(twice.epoch(), b);
    }
}

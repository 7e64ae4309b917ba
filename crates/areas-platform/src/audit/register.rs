//! What lies beside the keys: of each store that was served with them, the last checkpoint of each chain, and what became of
//! the store (D12.5, D12.9).
//!
//! ```text
//! {organizationId, size, …, storeId, storeEpoch}   a checkpoint of a store in an epoch
//! the same, without storeId                        of a build that gave stores no ids
//! {event: restored, from, …}                       the same, of a store that a restore made of a backup
//! {event: served | adopted | accepted | retired, storeId, storeEpoch, time}
//! ```
//!
//! INVARIANT WS-2: a store is measured against the lines of `checkpoints.jsonl` that name it and its epoch; those
//! that name none belong to the store that first opened with them and fitted them, for good.

use super::model::CheckpointLine;
use super::verify_start::refuse;
use crate::identity::{Identity, State};
use provost_kernel::{Error, Result, Timestamp};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

provost_kernel::word! {
    /// What a line says of a store beside its checkpoints.
    pub enum Event {
        /// It holds an organization, and is served with these keys.
        Served = "served",
        /// The lines that name no store are its own.
        Adopted = "adopted",
        /// What it lost, or where it was moved, is given up: its lines begin again.
        Accepted = "accepted",
        /// Another store took its place; it is served no more.
        Retired = "retired",
    }
}

impl Event {
    /// Returns the line that says so of a store.
    pub fn line(self, id: &str, epoch: i64, now: Timestamp) -> String {
        json!({ "event": self.as_str(), "storeId": id, "storeEpoch": epoch, "time": now }).to_string()
    }
}

/// A store in one epoch.
type StoreEpoch = (String, i64);
/// The last checkpoint of each chain.
pub(super) type Newest = BTreeMap<String, CheckpointLine>;

/// See the module's text. Of chains and stores the last lines alone are kept: the file grows for years.
#[derive(Clone, Debug, Default)]
pub struct Register {
    lines: usize,
    newest: BTreeMap<StoreEpoch, Newest>,
    unnamed: Newest,
    adopter: Option<StoreEpoch>,
    /// The highest epoch of each store.
    epochs: BTreeMap<String, i64>,
    retired: BTreeMap<String, Timestamp>,
    /// Of a store that a restore made: of whose backup.
    from: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    event: String,
    store_id: String,
    store_epoch: i64,
    time: Timestamp,
}

#[derive(Deserialize)]
struct Parent {
    from: Option<String>,
}

impl Register {
    /// Returns what lines of `checkpoints.jsonl` say.
    ///
    /// Errors: `AuditUnavailable` when one of them says nothing that this version understands.
    pub fn of(lines: &[String]) -> Result<Self> {
        let mut register = Self::default();
        register.extend(lines)?;
        Ok(register)
    }

    /// Adds lines that stand behind those that were read.
    ///
    /// Errors: as [`Self::of`].
    pub fn extend(&mut self, lines: &[String]) -> Result<()> {
        for text in lines {
            self.lines += 1;
            if text.contains("\"event\"")
                && let Ok(mark) = serde_json::from_str::<Mark>(text)
                && let Some(event) = Event::ALL.into_iter().find(|event| event.as_str() == mark.event)
            {
                self.mark(event, mark);
                continue;
            }
            let line: CheckpointLine = serde_json::from_str(text).map_err(|e| {
                refuse(format!(
                    "line {} of checkpoints.jsonl in the keys folder is no checkpoint",
                    self.lines
                ))
                .caused_by(e)
            })?;
            self.checkpoint(text, line)?;
        }
        Ok(())
    }

    fn mark(&mut self, event: Event, mark: Mark) {
        self.know(&mark.store_id, mark.store_epoch);
        match event {
            Event::Served | Event::Accepted => {}
            Event::Adopted => drop(self.adopter.get_or_insert((mark.store_id, mark.store_epoch))),
            Event::Retired => drop(self.retired.insert(mark.store_id, mark.time)),
        }
    }

    fn checkpoint(&mut self, text: &str, line: CheckpointLine) -> Result<()> {
        let Some(id) = line.store_id.clone() else {
            self.unnamed.insert(line.organization_id.clone(), line);
            return Ok(());
        };
        let epoch = line.store_epoch.unwrap_or(0);
        if !self.epochs.contains_key(&id) {
            let Parent { from } = serde_json::from_str(text).map_err(Error::internal)?;
            self.from.extend(from.map(|from| (id.clone(), from)));
        }
        self.know(&id, epoch);
        let chains = self.newest.entry((id, epoch)).or_default();
        chains.insert(line.organization_id.clone(), line);
        Ok(())
    }

    fn know(&mut self, id: &str, epoch: i64) {
        let known = self.epochs.entry(id.to_owned()).or_insert(epoch);
        *known = epoch.max(*known);
    }

    /// Says whether these keys have served no store yet.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Returns the highest epoch of a store; nothing for one that was never served with these keys.
    pub fn epoch_of(&self, id: &str) -> Option<i64> {
        self.epochs.get(id).copied()
    }

    /// Returns the highest epoch of any store, restores of earlier builds included.
    pub fn highest_epoch(&self) -> i64 {
        let unnamed = self.unnamed.values().filter_map(|line| line.store_epoch);
        self.epochs.values().copied().chain(unnamed).max().unwrap_or(0)
    }

    /// Returns when another store took the place of this one.
    pub fn retired(&self, id: &str) -> Option<Timestamp> {
        self.retired.get(id).copied()
    }

    /// Returns the lines that name no store, while they belong to none.
    pub(super) fn unclaimed(&self) -> Option<&Newest> {
        (self.adopter.is_none() && !self.unnamed.is_empty()).then_some(&self.unnamed)
    }

    /// Says whether a store, in this epoch of it, took the lines that name none for its own.
    pub(super) fn has_adopted(&self, known: &Identity) -> bool {
        let adopter = self.adopter.as_ref();
        adopter.is_some_and(|(id, epoch)| *id == known.id && *epoch >= known.epoch)
    }

    /// Says whether the lines that name no store are this one's.
    pub fn are_unnamed_of(&self, identity: Option<&Identity>) -> bool {
        match (&self.adopter, identity) {
            (None, None) => true,
            // A server that stopped between giving the id and writing that down.
            (None, Some(known)) => known.state == State::Live && self.epoch_of(&known.id).is_none(),
            (Some(_), None) => false,
            (Some((id, epoch)), Some(known)) => known.id == *id && known.epoch == *epoch,
        }
    }

    /// Returns what a store is measured against; of a store that has no id yet the lines that name none.
    pub(super) fn newest(&self, identity: Option<&Identity>) -> Newest {
        let Some(identity) = identity else {
            return self.unnamed.clone();
        };
        let named = (identity.id.clone(), identity.epoch);
        let mut newest = Newest::new();
        if self.adopter.as_ref() == Some(&named) {
            newest.clone_from(&self.unnamed);
        }
        newest.extend(self.newest.get(&named).cloned().unwrap_or_default());
        newest
    }

    /// Returns the last line of a chain that a store is measured against.
    pub(super) fn last(&self, identity: Option<&Identity>, organization: &str) -> Option<&CheckpointLine> {
        let unnamed = self.unnamed.get(organization);
        let Some(identity) = identity else {
            return unnamed;
        };
        let named = (identity.id.clone(), identity.epoch);
        let own = self
            .newest
            .get(&named)
            .and_then(|chains| chains.get(organization));
        own.or_else(|| unnamed.filter(|_| self.adopter.as_ref() == Some(&named)))
    }

    /// Returns the stores that are served and descend from the same as the store of a backup, itself included; of a backup
    /// whose store is in no line all of them.
    pub(super) fn relatives(&self, backup: Option<&str>) -> Vec<(String, i64)> {
        let root = backup
            .filter(|id| self.epochs.contains_key(*id))
            .or(match (backup, &self.adopter) {
                (None, Some((id, _))) => Some(id.as_str()),
                _ => None,
            });
        let family = root.map(|root| self.family(root));
        let is_meant = |id: &String| {
            !self.retired.contains_key(id) && family.as_ref().is_none_or(|family| family.contains(id))
        };
        let meant = self.epochs.iter().filter(|(id, _)| is_meant(id));
        meant.map(|(id, epoch)| (id.clone(), *epoch)).collect()
    }

    fn family(&self, root: &str) -> BTreeSet<String> {
        let mut family = BTreeSet::from([root.to_owned()]);
        loop {
            let more: Vec<&String> = self
                .from
                .iter()
                .filter(|(to, from)| family.contains(*to) != family.contains(*from))
                .flat_map(|(to, from)| [to, from])
                .collect();
            if more.is_empty() {
                return family;
            }
            family.extend(more.into_iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(store: Option<(&str, i64)>, organization: &str, size: u64, from: Option<&str>) -> String {
        let mut line = json!({
            "organizationId": organization, "size": size, "rootHash": "", "note": "", "time": "2026-11-20T03:15:00.000Z",
        });
        if let Some((id, epoch)) = store {
            line["storeId"] = id.into();
            line["storeEpoch"] = epoch.into();
        }
        if let Some(from) = from {
            line["from"] = from.into();
        }
        line.to_string()
    }

    fn of(lines: &[String]) -> Register {
        Register::of(lines).unwrap()
    }

    fn store(id: &str, epoch: i64) -> Identity {
        Identity {
            id: id.into(),
            epoch,
            state: State::Live,
        }
    }

    fn sizes(register: &Register, identity: Option<&Identity>) -> Vec<(String, u64)> {
        let newest = register.newest(identity);
        newest.into_iter().map(|(org, line)| (org, line.size)).collect()
    }

    /// Proves WS-2.
    #[test]
    fn a_store_is_measured_against_its_own_lines_of_its_epoch() {
        let register = of(&[
            line(Some(("a", 0)), "acme", 5, None),
            line(Some(("b", 1)), "acme", 9, None),
            line(Some(("a", 0)), "acme", 7, None),
            line(Some(("a", 0)), "globex", 2, None),
        ]);
        let own = vec![("acme".to_owned(), 7), ("globex".to_owned(), 2)];
        assert_eq!(sizes(&register, Some(&store("a", 0))), own);
        assert_eq!(sizes(&register, Some(&store("b", 1))), [("acme".to_owned(), 9)]);
        assert_eq!(sizes(&register, Some(&store("a", 1))), []);
        let last = |of: &Identity, chain: &str| register.last(Some(of), chain).map(|line| line.size);
        assert_eq!(last(&store("a", 0), "acme"), Some(7));
        assert_eq!(last(&store("a", 1), "acme"), None);
        assert_eq!(register.last(None, "acme"), None);
        assert_eq!(sizes(&register, Some(&store("c", 0))), []);
        assert_eq!((register.epoch_of("a"), register.epoch_of("c")), (Some(0), None));
        assert_eq!(register.highest_epoch(), 1);
    }

    /// Proves WS-2.
    #[test]
    fn lines_without_a_name_belong_to_whoever_adopted_them_first() {
        let at = Timestamp::from_ms(1);
        let unnamed = [line(None, "acme", 5, None), line(None, "acme", 8, None)];
        let mut register = of(&unnamed);
        assert_eq!(sizes(&register, None), [("acme".to_owned(), 8)]);
        assert!(register.unclaimed().is_some());
        let marks = [Event::Adopted.line("a", 2, at), Event::Adopted.line("b", 0, at)];
        register.extend(&marks).unwrap();
        assert!(register.unclaimed().is_none());
        assert_eq!(sizes(&register, Some(&store("a", 2))), [("acme".to_owned(), 8)]);
        assert_eq!(sizes(&register, Some(&store("b", 0))), []);
        let last = |of: &Identity| register.last(Some(of), "acme").map(|line| line.size);
        assert_eq!((last(&store("a", 2)), last(&store("b", 0))), (Some(8), None));
        // Its own lines come later, and an epoch later none of them binds.
        register
            .extend(&[
                line(Some(("a", 2)), "acme", 11, None),
                Event::Accepted.line("a", 3, at),
            ])
            .unwrap();
        assert_eq!(sizes(&register, Some(&store("a", 2))), [("acme".to_owned(), 11)]);
        assert_eq!(sizes(&register, Some(&store("a", 3))), []);
        assert_eq!(register.epoch_of("a"), Some(3));
    }

    #[test]
    fn whoever_descends_from_the_same_backup_is_a_relative_until_it_is_retired() {
        let at = Timestamp::from_ms(1);
        let mut register = of(&[
            Event::Served.line("a", 0, at),
            line(Some(("b", 1)), "acme", 9, Some("a")),
            line(Some(("c", 2)), "acme", 9, Some("b")),
            Event::Served.line("stranger", 0, at),
        ]);
        let ids = |register: &Register, of: Option<&str>| {
            let relatives = register.relatives(of).into_iter();
            relatives.map(|(id, _)| id).collect::<Vec<_>>()
        };
        for of in ["a", "b", "c"] {
            assert_eq!(ids(&register, Some(of)), ["a", "b", "c"]);
        }
        assert_eq!(ids(&register, Some("stranger")), ["stranger"]);
        for of in [Some("unknown"), None] {
            assert_eq!(ids(&register, of), ["a", "b", "c", "stranger"]);
        }
        register.extend(&[Event::Retired.line("b", 1, at)]).unwrap();
        assert_eq!(ids(&register, Some("a")), ["a", "c"]);
        assert_eq!(register.retired("b"), Some(at));
    }

    #[test]
    fn a_line_that_says_nothing_is_refused_by_its_number() {
        let mut register = of(&[line(None, "acme", 5, None)]);
        for text in [
            "{}",
            r#"{"event":"later","storeId":"a","storeEpoch":0,"time":"2026-11-20T03:15:00.000Z"}"#,
        ] {
            let error = register.clone().extend(&[text.to_owned()]).unwrap_err();
            assert!(error.message().contains("line 2 of checkpoints.jsonl"), "{error}");
        }
        register.extend(&[]).unwrap();
        assert!(!register.is_empty() && Register::default().is_empty());
    }
}

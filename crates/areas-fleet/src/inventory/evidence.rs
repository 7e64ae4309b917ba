//! By which evidence something is known, and what a name in an event may stand for: rules without storage.
//!
//! An event names a server as the person's client calls it. That name says nothing of what runs, so that it is compared with what this
//! person's machines are known to have under it, and with nobody else's:
//!
//! ```text
//! sole        each machine of the person was looked at wholly and lately, and all of them had this one server under the name, since before
//!             the event and without a break
//! candidate   the person has it under the name, and something else may be meant
//! unresolved  no known machine of the person has the name: used, and not configured as far as anybody knows
//! ```

use super::imported::Source;
use provost_areas_platform::announcements::UseWitness;
use provost_kernel::{Timestamp, word};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// LIMIT: candidates of one name that are told. Ours: a person has a handful.
const CANDIDATES: usize = 8;
/// How old the last look at a machine may be for a name to stand for one thing. Units: seconds. A device looks once an hour, and says
/// everything anew once a day (F3.9).
const LOOK_SECS: i64 = 86_400;
/// How names begin that are not shown.
const HIDDEN: &str = "hidden:";

word! {
    /// By what something is known.
    #[derive(PartialOrd, Ord)]
    pub enum Evidence {
        /// A configuration on a device names it.
        Configuration = "configuration",
        /// A hook, or something else that asked for a decision and is no gateway.
        Hook = "hook",
        /// A gateway that asked for a decision.
        Gateway = "gateway",
        /// A client's telemetry.
        Telemetry = "telemetry",
        /// A device whose hook judged by itself, and which says so.
        Device = "device",
        /// A report of another scanner that somebody imported.
        Import = "import",
    }
}

impl From<UseWitness> for Evidence {
    fn from(witness: UseWitness) -> Self {
        match witness {
            UseWitness::Hook => Self::Hook,
            UseWitness::Gateway => Self::Gateway,
            UseWitness::Telemetry => Self::Telemetry,
            UseWitness::Device => Self::Device,
        }
    }
}

word! {
    /// What the name in an event stands for.
    #[derive(PartialOrd, Ord)]
    pub enum Certainty {
        /// The one server that the person's devices have under this name, as far as all of them could be read.
        Sole = "sole",
        /// One of several that may be meant, or one beside which something could not be read.
        Candidate = "candidate",
        /// Nothing that a device of the person is known to have.
        Unresolved = "unresolved",
    }
}

/// By what something is known, and since when.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventoryEvidence")]
pub struct EvidenceView {
    /// By what.
    pub evidence: Evidence,
    /// Of an import: which scanner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Of what events name: whether the name stands for this alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// How many events named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<i64>,
}

impl EvidenceView {
    /// Returns what configurations say.
    pub fn configured(first_seen_at: Timestamp, last_seen_at: Timestamp) -> Self {
        Self {
            evidence: Evidence::Configuration,
            source: None,
            certainty: None,
            first_seen_at,
            last_seen_at,
            events: None,
        }
    }
}

/// A server as a machine of somebody has it, or had it.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    /// The same as clients write it into the names of tools.
    replaced: String,
    server: String,
    is_weak: bool,
    /// Since when the machine is theirs.
    owned_since: Timestamp,
    /// Since when it is there without a break, where that is known, and the machine is theirs.
    since: Option<Timestamp>,
    removed_at: Option<Timestamp>,
}

impl Named {
    /// Returns a server under a name, with since when the machine is that person's, since when it is there and when it went.
    pub fn new(
        name: String,
        server: String,
        is_weak: bool,
        owned_since: Timestamp,
        (since, removed_at): (Option<Timestamp>, Option<Timestamp>),
    ) -> Self {
        let replaced = name.chars().map(|c| if is_plain(c) { c } else { '_' });
        Self {
            replaced: replaced.collect(),
            name,
            server,
            is_weak,
            owned_since,
            since: since.map(|since| since.max(owned_since)),
            removed_at,
        }
    }

    /// Says whether a client that has it may have told a name; one of plain letters may be what is left of another one.
    ///
    /// Clients replace what the name of a tool cannot have, and whoever takes the name of a tool apart ends the server's at the first `__`.
    fn may_be_called(&self, told: &str, is_told_plain: bool) -> bool {
        let rest = || self.replaced.strip_prefix(told);
        self.name == told
            || (is_told_plain && rest().is_some_and(|rest| rest.is_empty() || rest.starts_with("__")))
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// What is known of the machines of one person.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    pub servers: Vec<Named>,
    /// When the machine was looked at that was longest ago, if each of them was.
    pub looked_at: Option<Timestamp>,
    /// Whether something of a machine could not be read, or is not kept.
    pub has_gaps: bool,
}

impl Machines {
    /// Returns what a name stood for in events between two instants.
    ///
    /// Keeps IN-9.
    pub fn meant(&self, name: &str, first_at: Timestamp, last_at: Timestamp) -> (Certainty, Vec<&str>) {
        let is_told_plain = name.chars().all(is_plain);
        let fitting = self
            .servers
            .iter()
            .filter(|one| one.may_be_called(name, is_told_plain))
            .filter(|one| one.owned_since <= last_at)
            .filter(|one| one.removed_at.is_none_or(|removed| removed >= first_at));
        let fitting: Vec<&Named> = fitting.collect();
        let servers: BTreeSet<&str> = fitting.iter().map(|one| one.server.as_str()).collect();
        if servers.is_empty() {
            return (Certainty::Unresolved, Vec::new());
        }
        let is_there = |one: &&Named| {
            !one.is_weak
                && one.removed_at.is_none()
                && one.since.is_some_and(|since| since <= first_at)
                && one.name == name
        };
        let is_looked_at = self
            .looked_at
            .is_some_and(|looked| looked.plus_secs(LOOK_SECS) >= last_at);
        // A name that is not shown may be any.
        let is_shown = !self.servers.iter().any(|one| one.name.starts_with(HIDDEN));
        let is_sole =
            servers.len() == 1 && fitting.iter().all(is_there) && is_looked_at && is_shown && !self.has_gaps;
        let certainty = if is_sole {
            Certainty::Sole
        } else {
            Certainty::Candidate
        };
        (certainty, servers.into_iter().take(CANDIDATES).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Timestamp = Timestamp::from_ms(1_000_000);

    fn named(name: &str, server: &str) -> Named {
        let times = (Some(Timestamp::EPOCH), None);
        Named::new(name.into(), server.into(), false, Timestamp::EPOCH, times)
    }

    fn of(servers: Vec<Named>) -> Machines {
        Machines {
            servers,
            looked_at: Some(THEN),
            has_gaps: false,
        }
    }

    fn meant(machines: &Machines, name: &str) -> (Certainty, Vec<String>) {
        let (certainty, servers) = machines.meant(name, THEN, THEN);
        (certainty, servers.into_iter().map(str::to_owned).collect())
    }

    /// Proves IN-9.
    #[test]
    fn a_name_stands_for_one_server_only_where_nothing_else_can_be_meant() {
        let sole = |machines: &Machines| meant(machines, "files");
        let one = of(vec![
            named("files", "a"),
            named("files", "a"),
            named("other", "b"),
        ]);
        assert_eq!(sole(&one), (Certainty::Sole, vec!["a".into()]));
        assert_eq!(meant(&one, "unheard"), (Certainty::Unresolved, vec![]));
        assert_eq!(meant(&Machines::default(), "files").0, Certainty::Unresolved);
        let candidates = |machines: Machines| {
            let (certainty, servers) = sole(&machines);
            assert_eq!(certainty, Certainty::Candidate, "{machines:?}");
            servers
        };
        let two = of(vec![named("files", "a"), named("files", "b")]);
        assert_eq!(candidates(two), ["a", "b"]);
        // Weak; there since after the event, or since nobody knows when; gone since.
        for change in [
            |one: &mut Named| one.is_weak = true,
            |one: &mut Named| one.since = Some(THEN.plus_ms(1)),
            |one: &mut Named| one.since = None,
            |one: &mut Named| one.removed_at = Some(THEN),
        ] {
            let mut doubtful = named("files", "a");
            change(&mut doubtful);
            assert_eq!(candidates(of(vec![doubtful])), ["a"]);
        }
        let mut gone = named("files", "b");
        gone.removed_at = Some(THEN.plus_ms(-1));
        assert_eq!(sole(&of(vec![named("files", "a"), gone])).0, Certainty::Sole);
        // What was used before the machine was theirs is nothing of it.
        let lent = |owned| {
            let times = (Some(Timestamp::EPOCH), None);
            of(vec![Named::new("files".into(), "a".into(), false, owned, times)])
        };
        assert_eq!(sole(&lent(THEN)).0, Certainty::Sole);
        assert_eq!(sole(&lent(THEN.plus_ms(1))), (Certainty::Unresolved, vec![]));
        let within = lent(THEN).meant("files", THEN.plus_ms(-1), THEN).0;
        assert_eq!(within, Certainty::Candidate);
        // Machines that were not looked at wholly, or not lately, and a name that is not shown.
        for (looked_at, has_gaps) in [
            (None, false),
            (Some(THEN), true),
            (Some(THEN.plus_secs(-LOOK_SECS - 1)), false),
        ] {
            candidates(Machines {
                servers: vec![named("files", "a")],
                looked_at,
                has_gaps,
            });
        }
        candidates(of(vec![named("files", "a"), named("hidden:withheld", "b")]));
    }

    /// Proves IN-9.
    #[test]
    fn what_a_client_replaces_in_a_name_makes_it_less_certain_and_never_another_one() {
        // The name of a tool is all that some clients tell.
        let one = of(vec![named("my docs", "a")]);
        assert_eq!(meant(&one, "my_docs"), (Certainty::Candidate, vec!["a".into()]));
        assert_eq!(meant(&one, "my docs").0, Certainty::Sole);
        assert_eq!(meant(&one, "my.docs").0, Certainty::Unresolved);
        assert_eq!(meant(&one, "My_docs").0, Certainty::Unresolved);
        let both = of(vec![named("github", "a"), named("github__evil", "b")]);
        assert_eq!(
            meant(&both, "github"),
            (Certainty::Candidate, vec!["a".into(), "b".into()])
        );
        assert_eq!(meant(&both, "github__evil"), (Certainty::Sole, vec!["b".into()]));
        let many: Vec<Named> = (0..20).map(|n| named("files", &n.to_string())).collect();
        assert_eq!(meant(&of(many), "files").1.len(), CANDIDATES);
    }
}

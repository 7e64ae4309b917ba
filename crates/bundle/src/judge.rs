//! Judging by a bundle.

use crate::document::{PolicyBundle, ServerStanding, WhenWithheld};
use crate::envelope::Refusal;
use crate::event::{AskedEvent, UnreadableEvent};
use crate::known::KnownWords;
use crate::told::ContentKind;
use crate::verdict::Verdict;
use provost_policy::{
    Action, Definition, Event, Family, Field, Occasion, PolicySet, Reason, SentAttributes, Symbols,
    check_sent, name_key, sent_words, without_missing,
};
use provost_words::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The attributes whose words mean records, and the device itself.
const WORDS: [Field; 5] = [
    Field::USER,
    Field::SERVICE_ACCOUNT,
    Field::SKILL,
    Field::RESOURCE,
    Field::DEVICE,
];
/// Those of them that say whom an event is of.
const WHOSE: [Field; 3] = [Field::USER, Field::SERVICE_ACCOUNT, Field::DEVICE];

/// Returns whether devices get policies that judge at an occasion.
pub const fn is_judged(occasion: Occasion) -> bool {
    matches!(
        occasion,
        Occasion::Prompt
            | Occasion::PreTool
            | Occasion::PostTool
            | Occasion::Response
            | Occasion::InlineHook
            | Occasion::Skill
    )
}

/// Says whether an event is of a call of an MCP server.
fn calls_server(event: &AskedEvent) -> bool {
    let is_there = |field: Field| {
        let is_missing = event.missing.iter().any(|missing| missing == field.name());
        is_missing || event.attributes.get(field.name()).is_some_and(Value::is_string)
    };
    is_there(Field::MCP_SERVER) || is_there(Field::MCP_PACKAGE)
}

/// Returns the key of the MCP server that an event names; `None` where nobody says it.
fn server_of(event: &AskedEvent) -> Option<&str> {
    let name = Field::MCP_PACKAGE.name();
    let is_missing = event.missing.iter().any(|missing| missing == name);
    let key = event.attributes.get(name).and_then(Value::as_str);
    key.filter(|_| !is_missing)
}

/// A bundle, compiled.
#[derive(Debug)]
pub struct Judge {
    bundle: PolicyBundle,
    set: PolicySet,
    needing: BTreeSet<(Family, String)>,
    words: KnownWords,
    /// The keys of the servers that are denied.
    denied: BTreeSet<String>,
    /// The same as names are compared.
    denied_names: BTreeSet<String>,
    /// Which contents a policy reads where.
    reads: BTreeSet<(Occasion, ContentKind)>,
}

/// What a device says of an event.
#[derive(Debug)]
pub enum Judgement {
    /// What the server would say.
    Verdict(Verdict),
    /// The server has to be asked. This is what holds where it does not answer: what nobody can say counts as matched.
    Ask(Verdict),
}

impl Judgement {
    /// Returns what holds where nobody is asked.
    pub fn verdict(&self) -> &Verdict {
        match self {
            Self::Verdict(verdict) | Self::Ask(verdict) => verdict,
        }
    }
}

impl Judge {
    /// Returns a bundle compiled.
    ///
    /// Errors: `Unreadable` where this version does not read one of its policies: nothing is judged without it.
    pub fn new(mut bundle: PolicyBundle) -> Result<Self, Refusal> {
        let mut definitions = Vec::with_capacity(bundle.policies.len());
        let mut needing = BTreeSet::new();
        for policy in &mut bundle.policies {
            // The documents would lie here as long as the agent runs, and are half of its memory.
            let document = std::mem::take(&mut policy.definition);
            let read = Definition::read(policy.family, &document);
            let mut read = read.map_err(|why| Refusal::Unreadable(format!("policy {}: {why}", policy.id)))?;
            read.keep_for_verdicts();
            if policy.needs_server {
                needing.insert((policy.family, read.id().to_owned()));
            }
            definitions.push(Arc::new(read));
        }
        let mut reads = BTreeSet::new();
        for policy in &definitions {
            let kinds: BTreeSet<ContentKind> =
                policy.fields().into_iter().filter_map(ContentKind::of).collect();
            let occasions = Occasion::ALL.into_iter().filter(|at| policy.judges_at(*at));
            reads.extend(occasions.flat_map(|at| kinds.iter().map(move |kind| (at, *kind))));
        }
        let set = PolicySet::new(definitions).map_err(|why| Refusal::Unreadable(why.to_string()))?;
        let denied = bundle.servers.iter().map(|server| match server.standing {
            ServerStanding::Denied => server.key.clone(),
        });
        let denied: BTreeSet<String> = denied.collect();
        let names = denied
            .iter()
            .map(|key| name_key(Field::MCP_PACKAGE, key).into_owned());
        Ok(Self {
            words: KnownWords::of(&bundle),
            denied_names: names.collect(),
            denied,
            bundle,
            set,
            needing,
            reads,
        })
    }

    /// Returns the bundle; the documents of its policies are null: what verdicts say of them is with what was compiled of them.
    pub fn bundle(&self) -> &PolicyBundle {
        &self.bundle
    }

    /// Takes out of an event that was judged what the device does not tell, and says whether it still has everything that the policies
    /// read there: whoever judges it again by these comes to the same.
    ///
    /// Keeps LJ-14.
    pub fn withhold(&self, event: &mut AskedEvent) -> bool {
        let held = self.bundle.told.withhold(SentAttributes {
            given: &mut event.attributes,
            missing: &mut event.missing,
        });
        let mut kinds = held.into_iter().filter_map(ContentKind::of);
        !kinds.any(|kind| self.reads.contains(&(event.occasion, kind)))
    }

    /// Judges an event, as of an instant.
    ///
    /// Keeps LJ-1, DE-5.
    ///
    /// Errors: an attribute that is none, or has another type.
    pub fn judge(&self, at: Timestamp, event: &AskedEvent) -> Result<Judgement, UnreadableEvent> {
        self.judge_among(at, event, &[])
    }

    /// Judges an event as [`Self::judge`] does, of a call that may be for any of several MCP servers, by their keys, beside the one that the
    /// event names.
    ///
    /// Keeps LJ-1, LJ-12, DE-5.
    ///
    /// Errors: as of [`Self::judge`].
    pub fn judge_among(
        &self,
        at: Timestamp,
        event: &AskedEvent,
        may_be: &[String],
    ) -> Result<Judgement, UnreadableEvent> {
        let occasion = event.occasion;
        let is_call = calls_server(event);
        let denied = self.denied_of(server_of(event), may_be).filter(|_| is_call);
        let mut keys = server_of(event)
            .into_iter()
            .chain(may_be.iter().map(String::as_str));
        let is_respelt = keys.any(|key| {
            let name = name_key(Field::MCP_PACKAGE, key);
            self.denied_names.contains(&*name)
        });
        // The groups of the register replace what is claimed; what is no list of groups is refused all the same.
        check_sent(occasion, &event.attributes, &[Field::GROUPS.name()])?;
        let (mut given, mut missing) = (event.attributes.clone(), event.missing.clone());
        let open: Vec<Field> = WORDS
            .into_iter()
            .filter(|field| {
                let mut words = sent_words(&given, &missing, *field);
                words.any(|word| !self.words.has(*field, word))
            })
            .collect();
        let mut sent = SentAttributes {
            given: &mut given,
            missing: &mut missing,
        };
        for field in &open {
            sent.miss(*field);
        }
        sent.name(&self.words.register);
        let is_anybodys = !is_judged(occasion) || WHOSE.into_iter().any(|field| sent.misses(field));

        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let attributes = without_missing(occasion, &given, &missing)?;
        let mut symbols = Symbols::knowing(Arc::clone(&self.words.register));
        let event = Event::read(&mut symbols, at.as_ms(), occasion, &attributes, &missing)?;

        let withheld = self.withheld(occasion, is_anybodys);
        let mut outcome = self.set.judge_unaided(&event, &symbols);
        let needs = |policy: &Definition| {
            let place = (policy.family(), policy.id().to_owned());
            self.needing.contains(&place)
        };
        // Whose groups they would be nobody knows either.
        let groups = open.contains(&Field::USER).then_some(Field::GROUPS);
        let reads_open = |policy: &Definition| {
            let read = policy.fields();
            open.iter().chain(&groups).any(|field| read.contains(field))
        };
        // The server alone opens requests for approvals and knows of what was approved.
        // One that is denied may be among those for which there was no room; and of another spelling of a key that is denied the server alone
        // knows whether it is another server's own key.
        let may_be_denied = is_call && denied.is_none() && (self.bundle.servers_withheld || is_respelt);
        let asks = withheld.is_some()
            || may_be_denied
            || outcome.action == Action::RequireApproval
            || outcome.findings.iter().any(|finding| {
                let is_open = finding.reason == Reason::EvaluationFailed && reads_open(&finding.policy);
                is_open || needs(&finding.policy)
            });
        outcome.doubt(needs);
        if let Some(action) = withheld.max(may_be_denied.then_some(Action::Block)) {
            outcome.raise(action);
        }
        if denied.is_some() {
            outcome.refuse();
        }
        let verdict = Verdict::of_event(&outcome, &event, &symbols);
        let mut verdict = verdict.map_err(|why| UnreadableEvent(why.to_string()))?;
        verdict.leave_open(&open);
        if let Some(key) = denied {
            verdict.deny(key);
            return Ok(Judgement::Verdict(verdict));
        }
        Ok(if asks {
            Judgement::Ask(verdict)
        } else {
            Judgement::Verdict(verdict)
        })
    }

    /// Returns the key of a server that is denied, where one is.
    pub fn any_denied(&self) -> Option<&str> {
        self.denied.first().map(String::as_str)
    }

    /// Returns the first key of a server that is denied and may be meant, by whoever knows what may be.
    pub fn denied_where(&self, may_be: impl Fn(&str) -> bool) -> Option<&str> {
        self.denied.iter().map(String::as_str).find(|key| may_be(key))
    }

    /// Returns the key of a denied server that a call may be for.
    fn denied_of<'a>(&'a self, named: Option<&str>, may_be: &[String]) -> Option<&'a str> {
        let mut keys = named.into_iter().chain(may_be.iter().map(String::as_str));
        keys.find_map(|key| self.denied.get(key)).map(String::as_str)
    }

    /// Returns the strongest action of what the bundle does not hold and may be about an event; nothing where there is nothing of the
    /// kind.
    fn withheld(&self, occasion: Occasion, is_anybodys: bool) -> Option<Action> {
        let withheld = self.bundle.withheld.iter().filter(|withheld| {
            withheld.occasion == occasion && (withheld.when == WhenWithheld::Always || is_anybodys)
        });
        withheld.map(|withheld| withheld.action).max()
    }
}

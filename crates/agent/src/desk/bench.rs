//! What the desk says of a question. It is pure: what becomes of it on the disk is the desk's.
//!
//! ```text
//! what is judged                               what is told
//! plain, in date, no past                      decided
//! with a finding, in date, no past             decided, once it is recorded
//! the judge asks, or some policy has a past    ask; until then what the judge says
//! expired and blocked                          decided, once it is recorded
//! expired and anything else                    ask; until then nothing, but for what requires an approval
//! ```
//!
//! Keeps LJ-1, LJ-4, LJ-5, LJ-11 and LJ-15.

use super::latest::{Latest, is_behind};
use super::servers::{ServerOfCall, Unread};
use crate::quarantine::Quarantine;
use provost_bundle::{AskedEvent, HookMode, Judge, Judgement, OnUnknown, Verdict};
use provost_hooks::{Client, KnownServer, Message, Mode, Question, hear};
use provost_policy::Action;
use provost_words::json;
use provost_words::time::{Clock, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// LIMIT: how deep a request is nested; contents are texts in it.
const DEPTH: usize = 32;
/// The attribute that the device knows better than its hook.
const DEVICE: &str = "device.id";

/// Who is meant by the account of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The registration names one user.
    Named(String),
    /// The user is called as the account.
    OfAccount,
    /// The registration says nothing by which the agent could tell; the server can, by the hook's token.
    Unsaid,
}

/// What a registration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The server.
    pub url: String,
    /// The key of the organization.
    pub organization: String,
    /// Who is meant.
    pub word: Word,
}

/// A bundle, ready to judge.
#[derive(Debug)]
pub struct Bench {
    judge: Arc<Judge>,
    /// Whether the clock that is asked was set back.
    is_behind: bool,
}

/// What the agent stands by now.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The bundle; none where there is none that is believed.
    pub bench: Option<Arc<Bench>>,
    /// The organization's mode, as it was known last.
    pub mode: Option<HookMode>,
    /// How the machine is held apart; nothing where it is not.
    pub quarantine: Option<Quarantine>,
    /// How far the server's clock is ahead. Units: milliseconds.
    pub skew_ms: i64,
    /// The latest instant that is known here; none where nothing was heard of the server yet.
    pub latest: Option<Latest>,
}

/// What a hook is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The server that the agent enrolled at.
    pub server: String,
    /// The organization that it enrolled in.
    pub organization: String,
    /// The organization's mode; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<HookMode>,
    /// How the machine is held apart; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
    /// The bypass by which the call passes, whatever was decided: that is recorded. Absent where none lets it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<ToldBypass>,
    /// How long the server is waited for. Units: milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u32>,
    /// What happens where the server does not answer either: of policies that are out of date and hold nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
    /// Whether it judged by policies: without them it cannot say either whether a call is for a server that is denied.
    #[serde(default)]
    pub judges: bool,
    /// What was decided, in the form of an answer to a request for decisions; absent where the server has to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Value>,
    /// Whether something is told, by a question that holds, where the server does not answer.
    #[serde(default)]
    pub holds: bool,
    /// Whether the server's answer may use an approval up: then it is waited for as long as there is time.
    #[serde(default)]
    pub may_use_approval: bool,
    /// Why the server has to be asked: a word for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Which server of MCP a call is for, so that the organization's server hears it as well; absent where nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<KnownServer>,
}

/// A bypass that is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToldBypass {
    /// Its id.
    pub id: String,
    /// Until when it lets calls pass at most, by the server's clock.
    pub until: Timestamp,
}

impl ToldBypass {
    /// Returns what that means, for whoever works on the machine.
    #[must_use]
    pub fn says(&self) -> String {
        format!(
            "the bypass {} is on until {}: what policies refuse on this machine passes, and is recorded",
            self.id, self.until
        )
    }
}

/// Where a question is asked.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    /// The name of the machine.
    pub host: Option<&'a str>,
    /// Says what is known of the server of a call.
    pub server_of: &'a dyn Fn(&Question) -> ServerOfCall,
}

/// What was said of a question.
#[derive(Clone, Debug)]
pub struct Said {
    /// What was decided for certain; none where the server has to be asked.
    pub decided: Option<Vec<Arc<Verdict>>>,
    /// What holds where the server does not answer; none where nobody can say anything.
    pub held: Option<Vec<Arc<Verdict>>>,
    /// Why the server has to be asked.
    pub why: Option<&'static str>,
    /// The request that was judged.
    pub request: Option<Value>,
    /// Whether the bundle was out of date.
    pub is_expired: bool,
    /// Which server of MCP the call is for.
    pub server: Option<KnownServer>,
    /// Whether the server would say the same of the events as they are told: not where a standing refuses what nobody can name for
    /// certain, or a policy of the same call needs the server.
    pub is_certain: bool,
}

impl Said {
    /// Returns that nobody here can say anything.
    pub(crate) fn nothing(why: &'static str) -> Self {
        Self {
            decided: None,
            held: None,
            why: Some(why),
            request: None,
            is_expired: false,
            server: None,
            is_certain: false,
        }
    }

    /// Returns what the policies come to where the call would not pass as it is, or would have to be asked about; nothing where it passes
    /// anyway, where nobody here can say anything, and where who asks is nobody of the device: a bypass is of its people.
    pub(crate) fn stopped(&self) -> Option<&[Arc<Verdict>]> {
        let verdicts = match (&self.decided, &self.held) {
            (Some(decided), _) if strongest(decided) <= Action::FlagForReview => return None,
            (Some(verdicts), _) | (None, Some(verdicts)) => verdicts,
            (None, None) => return None,
        };
        let is_nobodys = verdicts.iter().any(|verdict| verdict.names_unknown());
        (!is_nobodys).then_some(verdicts)
    }

    /// Returns whether what was decided is nothing to speak of.
    pub(crate) fn is_plain(&self) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|verdicts| verdicts.iter().all(|verdict| verdict.is_plain()))
    }
}

/// Why the server is asked where nobody here knows whose call it is.
const NOBODY: &str = "the agent cannot tell who asks";

/// Returns verdicts in the form of an answer to a request for decisions.
pub(crate) fn spoken(verdicts: &[Arc<Verdict>]) -> Value {
    let verdicts: Vec<&Verdict> = verdicts.iter().map(AsRef::as_ref).collect();
    json!({ "decisions": verdicts })
}

/// Returns the strongest action.
pub(crate) fn strongest(verdicts: &[Arc<Verdict>]) -> Action {
    let actions = verdicts.iter().map(|verdict| verdict.action());
    // Of nothing nobody knows anything.
    actions.max().unwrap_or(Action::Block)
}

impl Bench {
    /// Returns a bundle's.
    pub fn new(judge: Judge) -> Self {
        Self {
            judge: Arc::new(judge),
            is_behind: false,
        }
    }

    /// Returns the same before a clock that was set back: nothing of it is young.
    fn behind(&self) -> Self {
        Self {
            judge: self.judge.clone(),
            is_behind: true,
        }
    }

    /// Returns the judge.
    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Says what the bundle says of a client's event.
    ///
    /// `word` is who asks: the kernel's word of the account, or the registration's. Of nobody it says no more than which servers are denied.
    pub fn say(
        &self,
        client: Client,
        payload: &[u8],
        word: Option<&str>,
        mode: Mode,
        here: Here<'_>,
        now: Timestamp,
    ) -> Said {
        let mut question = match hear(client, payload) {
            Ok(Message::Question(question)) => question,
            // The hook heard them before, and asks about neither.
            Ok(Message::Remark) | Err(_) => return Said::nothing("the agent did not understand the event"),
        };
        let server = (here.server_of)(&question);
        if let Some(known) = &server.known {
            question.know(known);
        }
        let Some(request) = self.request(&question, word, mode, here.host) else {
            return Said::nothing("the agent did not understand the event");
        };
        let bundle = self.judge.bundle();
        let mut verdicts = Vec::new();
        let mut asks = None;
        // Where not all of the configuration can be read the call may be for a server that is denied, as well as for any other.
        let open = server.unread.zip(self.judge.any_denied());
        // The same of an entry of which nobody can read for which it is: then for those alone that it may be.
        let open = open.or_else(|| {
            let mut doubts = server.doubts.iter();
            doubts.find_map(|doubt| {
                let key = self.judge.denied_where(|key| doubt.is_of(key))?;
                Some((Unread::Entry(doubt.odd), key))
            })
        });
        let mut may_be = server.may_be;
        let open = open.filter(|(_, key)| !may_be.iter().any(|known| known == key));
        may_be.extend(open.map(|(_, key)| key.to_owned()));
        let Ok(events) = AskedEvent::all(&request) else {
            return Said::nothing("the agent did not understand the event");
        };
        for event in &events {
            match self.judge.judge_among(now, event, &may_be) {
                Ok(Judgement::Verdict(mut verdict)) => {
                    if let Some((why, key)) = open {
                        verdict.doubt_server(key, why.words());
                    }
                    verdicts.push(Arc::new(verdict));
                }
                Ok(Judgement::Ask(verdict)) => {
                    asks = Some("a policy needs the server");
                    verdicts.push(Arc::new(verdict));
                }
                Err(_) => return Said::nothing("the agent cannot judge the event"),
            }
        }
        // What is denied is denied to everybody; of the rest the server hears whose token asks.
        let is_nobodys = word.is_none();
        if is_nobodys {
            asks = Some(NOBODY);
        }
        // Who is not known has other policies than whoever is.
        if verdicts.iter().any(|verdict| verdict.names_unknown()) {
            asks = Some("the user of this account is not one of the device's people");
        }
        if bundle.record_all {
            asks = Some("a policy looks at what happened before");
        }
        // A clock that was set back makes nothing young.
        let is_early = self.is_behind || is_behind(now, bundle.issued_at);
        let is_expired = bundle.is_expired(now) || is_early;
        let said = |decided, held, why| Said {
            decided,
            held,
            why,
            request: Some(request.clone()),
            is_expired,
            server: server.known.clone(),
            is_certain: true,
        };
        // A refusal by a standing stands, whatever else has to be asked about and however old the bundle is.
        if verdicts.iter().any(|verdict| verdict.is_by_standing()) {
            // The server, which knows the one that the event names, would not come to the refusal of another that may be meant.
            let known = server.known.as_ref().map(|known| known.package_id.as_str());
            let is_of_known = known.is_some_and(|known| {
                verdicts
                    .iter()
                    .all(|verdict| verdict.denied_server().is_none_or(|key| key == known))
            });
            let is_certain = asks.is_none() && is_of_known;
            return Said {
                is_certain,
                ..said(Some(verdicts), None, None)
            };
        }
        if is_nobodys {
            // What an organization says of policies that are old is about its people.
            return Said {
                is_expired: false,
                ..said(None, None, asks)
            };
        }
        let action = strongest(&verdicts);
        if is_expired {
            let old = Some("the policies of this machine are out of date");
            return match (action, asks) {
                (Action::Block, None) => said(Some(verdicts), None, None),
                (Action::Block | Action::RequireApproval, _) => said(None, Some(verdicts), old),
                _ => said(None, None, old),
            };
        }
        match asks {
            None => said(Some(verdicts), None, None),
            Some(why) => said(None, Some(verdicts), Some(why)),
        }
    }

    /// Returns the request that the hook would send, with what the device knows better: itself.
    fn request(
        &self,
        question: &Question,
        word: Option<&str>,
        mode: Mode,
        host: Option<&str>,
    ) -> Option<Value> {
        let mut request = question.request(word, host, mode);
        for event in request["events"].as_array_mut()? {
            let missing = event["missing"].as_array_mut()?;
            let before = missing.len();
            missing.retain(|name| name != DEVICE);
            if missing.len() < before {
                event["attributes"][DEVICE] = self.judge.bundle().device_id.as_str().into();
            }
        }
        // As the server reads it, number by number.
        json::parse(request.to_string().as_bytes(), DEPTH).ok()
    }
}

impl Standing {
    /// Returns it as it counts before a clock: where that was set back, the bundle is as out of date.
    pub(crate) fn by(&self, clock: &dyn Clock) -> Self {
        let now = clock.now().plus_ms(self.skew_ms);
        let is_back = self
            .latest
            .is_some_and(|latest| is_behind(now, latest.least(clock)));
        let mut standing = self.clone();
        if is_back {
            standing.bench = self.bench.as_ref().map(|bench| Arc::new(bench.behind()));
        }
        standing
    }

    /// Returns the bypass by which calls of a client pass now: of a bundle that is in date, on a machine that is not held apart. The present is
    /// never less than what is known to have gone by, so that a clock that is set back prolongs nothing.
    ///
    /// Keeps LJ-15.
    pub fn bypass(&self, client: Client, clock: &dyn Clock) -> Option<ToldBypass> {
        let standing = self.by(clock);
        let bench = standing.bench.as_ref()?;
        let bundle = bench.judge.bundle();
        let shown = clock.now().plus_ms(self.skew_ms);
        let now = self.latest.map_or(shown, |latest| shown.max(latest.least(clock)));
        if standing.quarantine.is_some() || bench.is_behind || is_behind(shown, bundle.issued_at) {
            return None;
        }
        let (bypass, until) = bundle.bypass_of(client.inventory(), now)?;
        Some(ToldBypass {
            id: bypass.id.clone(),
            until,
        })
    }

    /// Returns the beginning of what a hook is told by an agent of this server and organization.
    pub(crate) fn told(&self, (server, organization): (&str, &str)) -> Told {
        let bundle = self.bench.as_ref().map(|bench| bench.judge.bundle());
        Told {
            server: server.to_owned(),
            organization: organization.to_owned(),
            mode: self.mode,
            quarantine: self.quarantine,
            bypass: None,
            deadline_ms: bundle.map(|bundle| bundle.hooks.deadline_ms),
            on_unknown: None,
            judges: false,
            decided: None,
            holds: false,
            may_use_approval: true,
            why: None,
            mcp_server: None,
        }
    }
}

//! How people and their machines are shown to others, as the server says it, and when that changed.

use crate::State;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How people and their machines are shown to others. Words that this version does not know are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Privacy {
    /// `directory`: others see whose machine it is. `pseudonymous`: they see a pseudonym.
    pub people: String,
    /// `show`: others see what the machine is called. `hide`: they do not.
    pub host_names: String,
    /// `show`: this machine says what folders of projects are called. `hide`: it does not, and neither where a server says nothing of it, or
    /// another word.
    #[serde(default = "hide")]
    pub project_names: String,
    /// What is told of prompts that machines judge: `full`, or anything else for nothing. It is what the organization says now; the signed
    /// bundle says what holds here. None where the server says nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
    /// The same of the arguments of tools and of their results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_arguments: Option<String>,
}

const SHOW: &str = "show";
const HIDE: &str = "hide";
const FULL: &str = "full";

fn hide() -> String {
    HIDE.to_owned()
}

impl PrivacyChange {
    /// Returns what happened, for whoever owns the machine.
    pub fn says(&self) -> String {
        format!(
            "changed, as this machine heard at {}; before: {}",
            self.at,
            self.was.says()
        )
    }
}

impl Privacy {
    /// Returns what that means, for whoever owns the machine.
    pub fn says(&self) -> String {
        let people = match self.people.as_str() {
            "directory" => "others see whose machine this is by its owner's id".to_owned(),
            "pseudonymous" => {
                "others see a pseudonym in place of its owner and of the home's account".to_owned()
            }
            other => format!("people are shown as {other:?}"),
        };
        let names = match self.host_names.as_str() {
            SHOW => "what it is called".to_owned(),
            HIDE => "not what it is called".to_owned(),
            other => format!("its name as {other:?}"),
        };
        let projects = if self.shows_project_names() {
            "are sent, without the rest of their paths"
        } else {
            "are not sent"
        };
        let told = [
            ("prompts", &self.prompts),
            ("arguments and results of tools", &self.tool_arguments),
        ];
        let told = told.into_iter().filter_map(|(what, word)| {
            let is = if word.as_ref()? == FULL { "are" } else { "are not" };
            Some(format!("; of calls that machines judge, {what} {is} told"))
        });
        let told: String = told.collect();
        format!("{people}, and {names}{told}; names of folders of projects {projects}")
    }

    /// Says whether what folders of projects are called may be sent.
    fn shows_project_names(&self) -> bool {
        self.project_names == SHOW
    }
}

/// A change of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivacyChange {
    /// When this machine heard of it, by its clock.
    pub at: Timestamp,
    /// What it was before.
    pub was: Privacy,
}

impl State {
    /// Says whether what folders of projects are called may be sent: where the server said so, and said nothing else since.
    ///
    /// Keeps PV-2.
    pub(crate) fn shows_project_names(&self) -> bool {
        self.privacy.as_ref().is_some_and(Privacy::shows_project_names)
    }

    /// Takes what a heartbeat was answered about it. An answer that says nothing of it changes nothing.
    pub(crate) fn hear_privacy(&mut self, answer: &Value, now: Timestamp) {
        let Some(Value::Object(mut said)) = answer.get("privacy").cloned() else {
            return;
        };
        // Whatever else cannot be read: what is not said to be shown is hidden.
        let shows = said.get("projectNames").and_then(Value::as_str) == Some(SHOW);
        if !said.get("projectNames").is_none_or(Value::is_string) {
            said.insert("projectNames".to_owned(), HIDE.into());
        }
        for name in ["prompts", "toolArguments"] {
            if !said.get(name).is_none_or(Value::is_string) {
                said.remove(name);
            }
        }
        let said = serde_json::from_value::<Privacy>(said.into()).ok();
        let kept = || {
            self.privacy.clone().filter(|_| !shows).map(|kept| Privacy {
                project_names: hide(),
                ..kept
            })
        };
        let Some(said) = said.or_else(kept) else { return };
        // What a server said nothing of before has not changed.
        let was = self.privacy.clone().map(|was| Privacy {
            prompts: was.prompts.or_else(|| said.prompts.clone()),
            tool_arguments: was.tool_arguments.or_else(|| said.tool_arguments.clone()),
            ..was
        });
        self.privacy = Some(said);
        match was {
            Some(was) if self.privacy.as_ref() != Some(&was) => {
                self.privacy_changed = Some(PrivacyChange { at: now, was });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_kept_with_what_was_before_until_the_next_one() {
        let mut state = State::default();
        let (first, later, last) = (
            Timestamp::from_ms(1_000),
            Timestamp::from_ms(2_000),
            Timestamp::from_ms(3_000),
        );
        let open = json!({ "privacy": { "people": "directory", "hostNames": "show" } });
        let hidden = json!({ "privacy": { "people": "pseudonymous", "hostNames": "hide", "later": 1 } });
        state.hear_privacy(&open, first);
        state.hear_privacy(&open, later);
        assert_eq!(
            state.privacy_changed, None,
            "what was not known before has not changed"
        );
        state.hear_privacy(&hidden, later);
        let half = json!({ "privacy": { "people": "directory" } });
        for nothing in [&hidden, &json!({}), &json!({ "privacy": 7 }), &half] {
            state.hear_privacy(nothing, last);
        }
        let kept: State = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
        let change = kept.privacy_changed.unwrap();
        assert_eq!((change.at, change.was.people.as_str()), (later, "directory"));
        assert!(
            change.says().contains("before: others see whose machine"),
            "{}",
            change.says()
        );
        let is = kept.privacy.unwrap();
        assert!(
            is.says().contains("a pseudonym")
                && is.says().contains("and not what it is called; names of folders"),
            "{}",
            is.says()
        );
    }

    #[test]
    fn what_the_organization_has_told_of_judged_calls_is_said_and_its_change_announced() {
        let says = |prompts: Value| json!({ "privacy": { "people": "directory", "hostNames": "show", "prompts": prompts, "toolArguments": "none" } });
        let earlier = json!({ "privacy": { "people": "directory", "hostNames": "show" } });
        let mut state = State::default();
        let at = Timestamp::from_ms(1_000);
        for (answer, is_change) in [
            (earlier, false),
            (says("off".into()), false),
            (says("off".into()), false),
            (says("full".into()), true),
        ] {
            state.hear_privacy(&answer, at);
            assert_eq!(state.privacy_changed.is_some(), is_change, "{answer}");
        }
        let said = state.privacy.as_ref().unwrap().says();
        assert!(
            said.contains("prompts are told") && said.contains("results of tools are not told"),
            "{said}"
        );
        let change = state.privacy_changed.clone().unwrap().says();
        assert!(change.contains("prompts are not told"), "{change}");
        // What cannot be read says nothing of it, and the rest is heard.
        state.hear_privacy(&says(json!(7)), at);
        assert_eq!(state.privacy.unwrap().prompts, None);
    }

    /// Proves PV-2.
    #[test]
    fn names_of_projects_are_sent_where_a_server_said_so_and_nothing_else_since() {
        let mut state = State::default();
        let at = Timestamp::from_ms(1_000);
        assert!(!state.shows_project_names(), "nothing was said");
        let says = |word: &str| json!({ "privacy": { "people": "directory", "hostNames": "show", "projectNames": word } });
        let earlier = json!({ "privacy": { "people": "directory", "hostNames": "show" } });
        for (answer, shows) in [
            (&earlier, false),
            (&says("show"), true),
            (&json!({}), true),
            (&says("Show"), false),
            (&says("show"), true),
            (&earlier, false),
            (&says("show"), true),
            (
                &json!({ "privacy": { "people": "directory", "hostNames": "show", "projectNames": 7 } }),
                false,
            ),
            (&says("show"), true),
            (
                &json!({ "privacy": { "people": 7, "hostNames": "show", "projectNames": "hide" } }),
                false,
            ),
            (&says("show"), true),
            (&says("hide"), false),
        ] {
            state.hear_privacy(answer, at);
            assert_eq!(state.shows_project_names(), shows, "{answer}");
            let kept: State = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
            assert_eq!(kept.shows_project_names(), shows, "{answer}");
            let says = state.privacy.as_ref().unwrap().says();
            let end = if shows {
                "are sent, without the rest of their paths"
            } else {
                "are not sent"
            };
            assert!(says.ends_with(end), "{says}");
        }
        let change = state.privacy_changed.unwrap();
        assert!(change.says().contains("projects are sent"), "{}", change.says());
        // What an agent of an earlier version kept.
        let kept = json!({ "privacy": { "people": "directory", "hostNames": "show" } });
        assert!(
            !serde_json::from_value::<State>(kept)
                .unwrap()
                .shows_project_names()
        );
    }
}

//! What of the events that it judged a device tells (F5.2).
//!
//! ```text
//! an event, wholly ──► Judge ──► a verdict
//!        └─► without what is not told: missing ──► the device's log ──► the server
//! ```
//!
//! What is taken out is missing and not absent: nobody says afterwards that it was not there, and a condition on it is unknown.
//!
//! Keeps LJ-14.

use provost_policy::{Field, SentAttributes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The address of a server: the one that the inventory has, without a user, a query and what looks secret. Which server it was is told.
const ADDRESS: &str = "mcp.remote_url";
/// What came of a tool.
const RESULT: &str = "tool.result";

provost_words::word! {
    /// What is told of prompts.
    #[derive(Default)]
    pub enum ToldPrompts {
        /// That there was one.
        #[default]
        Off = "off",
        /// The prompt.
        Full = "full",
    }
}

provost_words::word! {
    /// What is told of the arguments of a tool and of its results.
    #[derive(Default)]
    pub enum ToldArguments {
        /// That there were some.
        #[default]
        Nothing = "none",
        /// All of them.
        Full = "full",
    }
}

/// What of the contents of the events that it judged a device tells. Where nobody says it, and for a word that is not known here, it tells
/// the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToldContent {
    /// Of prompts, and of other texts that people and models wrote.
    #[serde(deserialize_with = "known")]
    pub prompts: ToldPrompts,
    /// Of the arguments of tools, and of their results.
    #[serde(deserialize_with = "known")]
    pub tool_arguments: ToldArguments,
}

fn known<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    let word = Value::deserialize(from)?;
    Ok(serde_json::from_value(word).unwrap_or_default())
}

/// What a content is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContentKind {
    /// What people and models write.
    Prompt,
    /// What a tool is given, and what comes of it.
    Arguments,
}

impl ContentKind {
    /// Returns what an attribute is of; nothing of one that is told in any case.
    pub fn of(field: Field) -> Option<Self> {
        let is_of_tool =
            field == Field::TOOL_INPUT || field.member_of_input().is_some() || field.name() == RESULT;
        if is_of_tool {
            return Some(Self::Arguments);
        }
        (field.is_content() && field.name() != ADDRESS).then_some(Self::Prompt)
    }
}

impl ToldContent {
    /// As little as a device can tell.
    pub const LEAST: Self = Self {
        prompts: ToldPrompts::Off,
        tool_arguments: ToldArguments::Nothing,
    };
    /// The whole event.
    pub const ALL: Self = Self {
        prompts: ToldPrompts::Full,
        tool_arguments: ToldArguments::Full,
    };

    /// Says whether contents of a kind are told.
    pub(crate) fn tells(self, kind: ContentKind) -> bool {
        match kind {
            ContentKind::Prompt => self.prompts == ToldPrompts::Full,
            ContentKind::Arguments => self.tool_arguments == ToldArguments::Full,
        }
    }

    /// Takes out of an event what is not told, and returns what that was, sorted by name. It is missing afterwards.
    ///
    /// Keeps LJ-14.
    pub fn withhold(self, mut event: SentAttributes<'_>) -> Vec<Field> {
        let held: Vec<Field> = Field::all()
            .filter(|field| event.given.contains_key(field.name()))
            .filter(|field| ContentKind::of(*field).is_some_and(|kind| !self.tells(kind)))
            .collect();
        for field in &held {
            event.miss(*field);
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    /// Proves LJ-14.
    #[test]
    fn whatever_holds_content_is_of_one_kind_and_no_name_is() {
        for field in Field::all() {
            let is_told = ContentKind::of(field).is_none();
            assert_eq!(
                is_told,
                !field.is_content() || field.name() == ADDRESS,
                "{}",
                field.name()
            );
        }
        let of = |name: &str| ContentKind::of(Field::named(name).unwrap());
        for name in [
            "tool.input",
            "tool.input.command",
            "tool.input.file_path",
            "tool.result",
        ] {
            assert_eq!(of(name), Some(ContentKind::Arguments), "{name}");
        }
        for name in ["request.prompt", "response.content"] {
            assert_eq!(of(name), Some(ContentKind::Prompt), "{name}");
        }
        for name in ["tool.id", "mcp.server_id", "mcp.package_id", "identity.user_id"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    /// Proves LJ-14.
    #[test]
    fn the_least_is_told_unless_a_word_that_is_known_says_more() {
        let read = |said: Value| serde_json::from_value::<ToldContent>(said).unwrap();
        for said in [
            json!({}),
            json!({ "prompts": "off", "toolArguments": "none" }),
            json!({ "prompts": "policy", "toolArguments": "shape" }),
            json!({ "prompts": "Full", "toolArguments": true }),
            json!({ "prompts": null, "toolArguments": ["full"], "later": "full" }),
        ] {
            assert_eq!(read(said.clone()), ToldContent::LEAST, "{said}");
        }
        let prompts = ToldContent {
            prompts: ToldPrompts::Full,
            ..ToldContent::LEAST
        };
        assert_eq!(read(json!({ "prompts": "full" })), prompts);
        let all = json!({ "prompts": "full", "toolArguments": "full" });
        assert_eq!(read(all.clone()), ToldContent::ALL);
        assert_eq!(json!(ToldContent::ALL), all);
        assert_eq!(ToldContent::default(), ToldContent::LEAST);
    }

    fn withheld(
        told: ToldContent,
        given: &Value,
        missing: &[&str],
    ) -> (Value, Vec<String>, Vec<&'static str>) {
        let mut given: Map<String, Value> = given.as_object().unwrap().clone();
        let mut missing: Vec<String> = missing.iter().map(|name| (*name).to_owned()).collect();
        let held = told.withhold(SentAttributes {
            given: &mut given,
            missing: &mut missing,
        });
        let held = held.into_iter().map(Field::name).collect();
        (given.into(), missing, held)
    }

    /// Proves LJ-14.
    #[test]
    fn what_is_not_told_is_missing_and_everything_else_stays() {
        let event = json!({
            "request.prompt": "secret", "tool.input": { "command": "secret" }, "tool.input.command": "secret", "tool.result": "secret",
            "tool.id": "Bash", "mcp.remote_url": "https://docs.test/mcp",
        });
        assert_eq!(
            withheld(ToldContent::ALL, &event, &["llm.model"]),
            (event.clone(), vec!["llm.model".to_owned()], vec![])
        );
        let (left, missing, held) = withheld(ToldContent::LEAST, &event, &["llm.model", "tool.result"]);
        assert_eq!(
            left,
            json!({ "tool.id": "Bash", "mcp.remote_url": "https://docs.test/mcp" })
        );
        assert_eq!(
            missing,
            [
                "llm.model",
                "tool.result",
                "request.prompt",
                "tool.input",
                "tool.input.command"
            ],
            "each of them once"
        );
        assert_eq!(
            held,
            [
                "request.prompt",
                "tool.input",
                "tool.input.command",
                "tool.result"
            ]
        );
        // Each word for itself.
        let prompts = ToldContent {
            prompts: ToldPrompts::Full,
            ..ToldContent::LEAST
        };
        let (left, _, held) = withheld(prompts, &event, &[]);
        assert_eq!((&left["request.prompt"], held.len()), (&json!("secret"), 3));
        let arguments = ToldContent {
            tool_arguments: ToldArguments::Full,
            ..ToldContent::LEAST
        };
        assert_eq!(withheld(arguments, &event, &[]).2, ["request.prompt"]);
        // Of what was not there nothing is said.
        assert_eq!(
            withheld(ToldContent::LEAST, &json!({ "tool.id": "Bash" }), &[]).1,
            [""; 0]
        );
    }
}

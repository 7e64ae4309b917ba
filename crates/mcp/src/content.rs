//! Documents and prompts: what a server offers beside its tools. The same for every caller, so no secret belongs here.

use bytes::Bytes;
use rmcp::ErrorData;
use rmcp::model::{
    CompleteResult, CompletionInfo, GetPromptResult, JsonObject, PromptArgument, PromptMessage,
    ReadResourceResult, Resource, ResourceContents, Role,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A text that can be read.
#[derive(Clone, Debug)]
pub struct Document {
    /// The URI by which it is read.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// The media type.
    pub media_type: String,
    /// The text.
    pub text: Text,
}

/// A text that stands in the program, or one that is made when somebody first asks for it.
#[derive(Clone)]
pub enum Text {
    /// It stands in the program.
    Static(&'static str),
    /// Returns it; asked each time, so it keeps what it made.
    Made(Arc<dyn Fn() -> Bytes + Send + Sync>),
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static(_) => "Static",
            Self::Made(_) => "Made",
        })
    }
}

impl Text {
    fn read(&self) -> String {
        match self {
            Self::Static(text) => (*text).to_owned(),
            Self::Made(made) => String::from_utf8_lossy(&made()).into_owned(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Static(text) => text.len(),
            Self::Made(made) => made().len(),
        }
    }
}

/// A question that people start from.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// What it takes.
    pub arguments: Vec<Argument>,
    /// Writes the question; every required argument is there.
    pub render: fn(&BTreeMap<String, String>) -> String,
}

/// An argument of a prompt.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name.
    pub name: String,
    /// What it means.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
    /// What is proposed while it is typed; nothing else is refused.
    pub proposals: Vec<String>,
}

impl Document {
    pub(crate) fn described(&self) -> Resource {
        let mut resource = Resource::new(self.uri.clone(), self.name.clone());
        resource.title = Some(self.title.clone());
        resource.mime_type = Some(self.media_type.clone());
        resource.size = Some(self.text.len() as u64);
        resource
    }

    pub(crate) fn read(&self) -> ReadResourceResult {
        let text = ResourceContents::text(self.text.read(), self.uri.clone());
        ReadResourceResult::new(vec![text.with_mime_type(self.media_type.clone())])
    }
}

impl Prompt {
    pub(crate) fn described(&self) -> rmcp::model::Prompt {
        let arguments = self.arguments.iter().map(|argument| {
            PromptArgument::new(argument.name.clone())
                .with_description(argument.description.clone())
                .with_required(argument.required)
        });
        let prompt = rmcp::model::Prompt::new(
            self.name.clone(),
            Some(self.description.clone()),
            Some(arguments.collect()),
        );
        prompt.with_title(self.title.clone())
    }

    /// Writes the question.
    ///
    /// Errors: `invalid params`, naming the argument that is missing, unknown or no text.
    pub(crate) fn get(&self, given: Option<JsonObject>) -> Result<GetPromptResult, ErrorData> {
        let wrong = |name: &str, what: &str| {
            ErrorData::invalid_params(format!("the argument /arguments/{} {what}", cut(name)), None)
        };
        let mut arguments = BTreeMap::new();
        for (name, value) in given.unwrap_or_default() {
            if !self.arguments.iter().any(|argument| argument.name == name) {
                return Err(wrong(&name, "does not exist in this prompt"));
            }
            let Value::String(text) = value else {
                return Err(wrong(&name, "must be a string"));
            };
            arguments.insert(name, text);
        }
        for argument in self.arguments.iter().filter(|argument| argument.required) {
            if !arguments.contains_key(&argument.name) {
                return Err(wrong(&argument.name, "is required"));
            }
        }
        let message = PromptMessage::new_text(Role::User, (self.render)(&arguments));
        let mut result = GetPromptResult::new(vec![message]);
        result.description = Some(self.description.clone());
        Ok(result)
    }

    /// Proposes values for an argument.
    pub(crate) fn complete(&self, argument: &str, typed: &str) -> CompleteResult {
        let known = self.arguments.iter().find(|known| known.name == argument);
        let proposals = known.map(|known| known.proposals.as_slice()).unwrap_or_default();
        let fitting = proposals.iter().filter(|proposal| proposal.starts_with(typed));
        let values = fitting.take(CompletionInfo::MAX_VALUES).cloned().collect();
        CompleteResult::new(CompletionInfo::with_all_values(values).unwrap_or_default())
    }
}

/// Returns a caller's word as a message may show it.
pub(crate) fn cut(word: &str) -> String {
    word.chars().filter(|c| !c.is_control()).take(64).collect()
}

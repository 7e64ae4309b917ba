//! What a client hears.
//!
//! Keeps HK-1, HK-2, HK-3 and HK-4. Source: what each client did when it was measured (ADR 0097).

use crate::client::{Client, Mode};
use crate::decision::{Action, Decision};
use crate::question::{Moment, Question, Shape};
use provost_words::visible::visible;
use serde_json::{Value, json};

/// What a hook writes and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// One JSON object, or nothing.
    pub stdout: Vec<u8>,
    /// A line for people, or nothing.
    pub stderr: String,
    /// 0, or 2 for a refusal.
    pub exit: u8,
}

impl Answer {
    /// Returns the answer that lets the client go on as if there were no hook.
    pub fn pass() -> Self {
        Self::json(&json!({}))
    }

    fn json(object: &Value) -> Self {
        Self {
            stdout: object.to_string().into_bytes(),
            stderr: String::new(),
            exit: 0,
        }
    }

    /// Adds what a person should know; nothing else of the answer changes. A refusal has its own words.
    #[must_use]
    pub fn noted(mut self, sentence: &str) -> Self {
        let object = serde_json::from_slice::<Value>(&self.stdout).ok();
        if let Some(mut object) = object.filter(|object| object.is_object() && self.exit == 0) {
            let before = object.get("systemMessage").and_then(Value::as_str);
            let text = before.map_or_else(|| sentence.to_owned(), |before| format!("{before}; {sentence}"));
            object["systemMessage"] = text.into();
            self.stdout = object.to_string().into_bytes();
        }
        self
    }

    /// Returns a refusal in words. Codex lets the call run where standard error is empty.
    pub fn refusal(sentence: &str) -> Self {
        Self {
            stdout: Vec::new(),
            stderr: format!("provost: {}\n", visible(sentence)),
            exit: 2,
        }
    }
}

/// How a decision is answered.
#[derive(Clone, Debug)]
enum Rendering {
    Pass,
    Tell(String),
    Ask(String),
    Refuse(String),
}

/// Returns what the client hears of a decision.
pub fn answer(question: &Question, mode: Mode, decision: &Decision) -> Answer {
    match mode {
        Mode::Monitor => Answer::pass(),
        Mode::Enforce => rendered(question, rendering(question, decision)),
    }
}

/// Returns what the client hears of a call that a bypass lets pass; the person is told why, where it would not have passed as it is.
pub fn let_pass(decision: &Decision, sentence: &str) -> Answer {
    match decision.action {
        Action::Allow | Action::FlagForReview => Answer::pass(),
        Action::Nudge | Action::Redact | Action::Filter | Action::RequireApproval | Action::Block => {
            Answer::pass().noted(&format!("provost: {sentence}"))
        }
    }
}

/// Returns what the client hears where nobody decided; without a question the event was not understood. The sentence names the cause
/// and the next step.
pub fn undecided(question: Option<&Question>, mode: Mode, sentence: &str) -> Answer {
    match (mode, question) {
        (Mode::Monitor, _) => {
            Answer::json(&json!({ "systemMessage": format!("provost (monitor): {sentence}") }))
        }
        // A refusal in words hides no result in Claude Code: the model sees it all the same.
        (Mode::Enforce, Some(question)) if question.moment == Moment::PostTool => {
            rendered(question, Rendering::Refuse(format!("Withheld: {sentence}")))
        }
        (Mode::Enforce, _) => Answer::refusal(sentence),
    }
}

fn rendering(question: &Question, decision: &Decision) -> Rendering {
    let said = decision.said();
    let client = question.client.name();
    match decision.action {
        Action::Allow | Action::FlagForReview => Rendering::Pass,
        Action::Nudge => Rendering::Tell(format!("Note of {said}")),
        Action::Block => Rendering::Refuse(format!("Blocked by {said}")),
        Action::RequireApproval => {
            let can_ask = question.client == Client::ClaudeCode && question.moment == Moment::PreTool;
            let required = format!("An approval is required by {said}");
            if !decision.self_serve && !decision.requests.is_empty() {
                let requests = decision.requests.join(", ");
                Rendering::Refuse(format!(
                    "{required}. Somebody else has to approve it: {requests} waits for them (provost approvals get). Your approvers \
                     see this call, its folder and the name of this machine, without what looks like a credential. When it is \
                     approved, the same call passes once; a changed one asks again (strengthened: client_cannot)"
                ))
            } else if !decision.self_serve {
                let (mut words, mut steps) = (String::new(), Vec::new());
                for word in &decision.refusals {
                    words.push_str(", ");
                    words.push_str(word);
                    let step = step_after(word);
                    if !steps.contains(&step) {
                        steps.push(step);
                    }
                }
                if steps.is_empty() {
                    steps.push(UNSAID);
                }
                Rendering::Refuse(format!(
                    "{required}. Somebody else has to approve it, which cannot be asked for here: {} (strengthened: client_cannot{words})",
                    steps.join("; ")
                ))
            } else if can_ask {
                Rendering::Ask(required)
            } else {
                Rendering::Refuse(format!(
                    "{required}. {client} cannot ask for it here (strengthened: client_cannot)"
                ))
            }
        }
        Action::Redact | Action::Filter => {
            let part = match decision.action {
                Action::Redact => "redacted",
                _ => "filtered",
            };
            Rendering::Refuse(format!(
                "This has to be {part} by {said}. A hook of {client} cannot do that, so it does not pass (strengthened: client_cannot)"
            ))
        }
    }
}

/// What helps where nobody says why there is no request: an agent alone knows of none.
const UNSAID: &str = "try again when the server answers (provost hook doctor)";

/// Returns what helps where there is no request for an approval, by the server's word for why.
fn step_after(refusal: &str) -> &'static str {
    match refusal {
        "not_a_tool_call" => "approvals are of calls of tools before they run, so ask who writes the policy",
        "subject_unknown" => {
            "the server knows nobody by the name that this hook says, so correct the user in hook.toml (provost hook doctor)"
        }
        "call_not_certain" => "say the call again with each argument once, under the tool's own name",
        "call_holds_credential" => "name the credential by a variable or a file instead of writing it out",
        "call_too_large" => "make the call smaller, with what is long in a file",
        "call_is_blocked" => {
            "another policy blocks the same call, which no approval changes, so do it otherwise"
        }
        "too_many_open" => {
            "wait until a request is decided or an hour is over, or take one back that is not needed (provost approvals cancel)"
        }
        "clock_set_back" => "the clock of the server was set back, so ask who runs it to correct that",
        _ => "ask who writes the policy",
    }
}

fn rendered(question: &Question, rendering: Rendering) -> Answer {
    match rendering {
        Rendering::Pass => Answer::pass(),
        Rendering::Tell(text) => Answer::json(&json!({ "systemMessage": text })),
        Rendering::Ask(text) => Answer::json(&permission(question, "ask", &text)),
        Rendering::Refuse(text) => Answer::json(&refused(question, &text)),
    }
}

/// `ask` and `deny` alone: `allow` would switch the client's own prompts off.
fn permission(question: &Question, word: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": question.moment.event_name(question.client),
        "permissionDecision": word,
        "permissionDecisionReason": reason,
    } })
}

fn refused(question: &Question, reason: &str) -> Value {
    match (question.client, question.moment) {
        (Client::Gemini, _) => json!({ "decision": "deny", "reason": reason }),
        (Client::ClaudeCode | Client::Codex, Moment::PreTool) => permission(question, "deny", reason),
        // After a tool of Codex the reason takes the place of the result.
        (Client::ClaudeCode, Moment::Prompt) | (Client::Codex, Moment::Prompt | Moment::PostTool) => {
            json!({ "decision": "block", "reason": reason })
        }
        (Client::ClaudeCode, Moment::PostTool) => withheld(question, reason),
    }
}

/// Claude Code shows the model what a hook blocks after a tool; it hides only what is replaced in the tool's own form.
fn withheld(question: &Question, reason: &str) -> Value {
    let replacement = match question.shape {
        Shape::Shell => json!({ "stdout": reason, "stderr": "", "interrupted": false, "isImage": false }),
        Shape::Contents => json!([{ "type": "text", "text": reason }]),
        // The agent stops instead.
        Shape::Unknown => return json!({ "continue": false, "stopReason": reason }),
    };
    json!({ "hookSpecificOutput": {
        "hookEventName": question.moment.event_name(question.client),
        "updatedToolOutput": replacement,
    } })
}

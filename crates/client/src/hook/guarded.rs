//! What is guarded, and what is not, in sentences for people. Source: what the clients did when it was measured.

use super::places::Whose;
use provost_hooks::{Client, Mode};

/// Returns what a registration guards.
pub fn guarded(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => {
            "every tool before it runs, every prompt before the model sees it, every result before the model sees it; nothing runs \
             without a decision"
        }
        Mode::Monitor => {
            "nothing: every call and prompt is judged and recorded, and runs whatever is decided"
        }
    }
}

/// Returns what stays open beside a registration.
pub fn not_guarded(client: Client, whose: Whose, mode: Mode) -> Vec<&'static str> {
    let mut open = Vec::new();
    if mode == Mode::Monitor {
        open.push("anything, in monitor: what is decided is recorded and not obeyed");
    }
    if whose == Whose::User {
        open.push("the person's own will: they can change or remove these settings (--system binds them)");
        if client == Client::ClaudeCode {
            open.push(
                "a folder that the person trusts: its .claude/settings.json can switch a person's hooks off (disableAllHooks), and give the hook \
                 other variables and so another hook.toml (--system binds it)",
            );
        }
    }
    match client {
        Client::ClaudeCode => {
            open.push("versions of Claude Code before 2.1.295, which do not know onFailure: a hook that is late lets calls run there");
        }
        Client::Codex => {
            open.push("apply_patch in the Codex app, and nested calls of code mode on Windows: Codex ignores a hook's refusal there");
        }
        Client::Gemini => {
            open.push(
                "a folder that the person trusts, and the person: hooksConfig in their settings switches off the machine's hooks too; and one that \
                 they do not trust, where Gemini CLI runs no hook",
            );
            open.push(
                "who sets GEMINI_CLI_SYSTEM_SETTINGS_PATH or GEMINI_CLI_SYSTEM_DEFAULTS_PATH: one variable takes the machine's settings away, or \
                 brings others",
            );
        }
    }
    open.push("what a tool does once it runs: a script that was allowed starts what it likes");
    open.push("what other programs do on this machine, and models that are asked without this client");
    open
}

//! `provost hook install CLIENT --managed PROFILE`: the registration becomes part of a release of managed configuration.
//!
//! A release is a whole content, so what the current one says is read first and kept. Values that may be secret are read as a mark,
//! and a mark is never published.

use crate::cli::{Client as Server, Confirm, Consent, Exit, Failure, Terminal};
use crate::managed_config::publish::{Publication, print, target_of};
use crate::managed_config::pull::profile_id;
use clap::ArgMatches;
use provost_hooks::{Client, Mode, hooks, merged};
use serde_json::{Map, Value, json};

const GROUP: &str = "managed-config";
/// What stands for a hidden value.
const MARK: &str = "[redacted";

/// Publishes a registration: a client, a mode, a command line.
pub async fn publish(
    (client, mode, line): (Client, Mode, &str),
    named: &str,
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let target = match client {
        Client::ClaudeCode => "claude_code",
        Client::Codex => "codex",
        Client::Gemini => {
            let line = "managed configuration does not know the form of Gemini CLI";
            return Err(
                Failure::usage(line).and("install it on the machine: provost hook install gemini --system")
            );
        }
    };
    let server = Server::connect(matches, terminal)?;
    let profile = profile_id(&server, named).await?;
    let found = target_of(&server, &profile).await?;
    if found != target {
        return Err(Failure::usage(format!(
            "the profile {named} is for {found}, not for {target}"
        )));
    }
    let mut content = current(&server, &profile).await?;
    let enforced = content.entry("enforced").or_insert_with(|| json!({}));
    let Value::Object(before) = enforced.take() else {
        return Err(Failure::new(
            Exit::Conflict,
            "the current release has no members; nothing was published",
        ));
    };
    let mut ours = hooks(client, mode, line);
    if client == Client::Codex {
        let folder = std::path::Path::new(line).parent().and_then(|path| path.to_str());
        let is_plain = folder.is_some_and(|folder| folder.starts_with('/') && !folder.contains(' '));
        if let (Some(folder), true) = (folder, is_plain) {
            ours["managed_dir"] = folder.into();
        }
    }
    let managed_dir = ours.as_object_mut().and_then(|ours| ours.remove("managed_dir"));
    let merged = merged(client, before, &ours);
    let mut merged =
        merged.map_err(|why| Failure::new(Exit::Conflict, format!("nothing was published: {}", why.0)))?;
    if let (Some(folder), Some(hooks)) = (
        managed_dir,
        merged.get_mut("hooks").and_then(Value::as_object_mut),
    ) {
        hooks.entry("managed_dir").or_insert(folder);
    }
    if client == Client::Codex && !pins(&mut merged) {
        let line = "features of the current release leaves it to each person to switch hooks off; nothing was published";
        return Err(
            Failure::new(Exit::Conflict, line).and("publish it with hooks = true in [features] first")
        );
    }
    *enforced = Value::Object(merged);
    if has_mark(&Value::Object(content.clone())) {
        let line =
            "the current release holds values that are not shown, and would be lost; nothing was published";
        return Err(Failure::new(Exit::Conflict, line).and(
            "add what `provost hook install … --print` shows to the files that you publish, with `provost managed-config publish`",
        ));
    }
    let publication = Publication {
        client: &server,
        profile,
        body: json!({ "content": content }),
        consent: Consent::of(matches, terminal, Confirm::Absent)?,
    };
    let answer = publication.perform(matches.get_flag("yes")).await?;
    print(&server, matches, &answer)?;
    server.note(
        "each machine needs the program at that path, and /etc/provost/hook.toml: see the guide on hooks",
    );
    Ok(())
}

/// Has requirements of Codex say that hooks are on, without which a person switches them off; false where they say otherwise.
fn pins(requirements: &mut Map<String, Value>) -> bool {
    let features = requirements.entry("features").or_insert_with(|| json!({}));
    let Some(features) = features.as_object_mut() else {
        return false;
    };
    *features.entry("hooks").or_insert_with(|| true.into()) == true
}

/// Returns the content of the current release; an empty one before the first.
async fn current(server: &Server<'_>, profile: &str) -> Result<Map<String, Value>, Failure> {
    let found = server.get_json(&[GROUP, "profiles", profile], &[]).await?;
    let Some(release) = found["profile"]["currentReleaseId"].as_str() else {
        return Ok(Map::new());
    };
    let path = [GROUP, "profiles", profile, "releases", release, "content"];
    let shown = server.get_json(&path, &[]).await?;
    match &shown["content"] {
        Value::Object(content) => Ok(content.clone()),
        _ => Err(Failure::new(
            Exit::ServerFault,
            "the answer is no release; is this a Provost server?",
        )),
    }
}

fn has_mark(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with(MARK),
        Value::Array(items) => items.iter().any(has_mark),
        Value::Object(members) => members.values().any(has_mark),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_of_codex_say_that_hooks_are_on_or_are_not_published() {
        let pinned = |content: Value| {
            let mut content = content.as_object().unwrap().clone();
            let is_pinned = pins(&mut content);
            (is_pinned, Value::Object(content))
        };
        let on = json!({ "features": { "hooks": true } });
        assert_eq!(pinned(json!({})), (true, on.clone()));
        assert_eq!(pinned(on.clone()), (true, on));
        let more = json!({ "features": { "goals": false, "hooks": true } });
        assert_eq!(pinned(json!({ "features": { "goals": false } })), (true, more));
        assert!(!pinned(json!({ "features": { "hooks": false } })).0);
        assert!(!pinned(json!({ "features": [] })).0);
    }
}

//! What a server says of a member of a request, said of the flag that a person typed.

use super::api::Operation;
use super::commands::flag_name;
use super::failure::Failure;
use super::flags::{FlagTarget, placeholder};
use super::schema::Field;
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::Value;

/// What accompanies a write: its member, its header, and the flag that says it.
const TRIO: [(&str, &str, &str); 3] = [
    ("reason", "x-reason", "--reason"),
    ("idempotencyKey", "idempotency-key", "--idempotency-key"),
    ("confirm", "x-confirm", "--confirm"),
];

/// Names flags in the place of pointers to members (`/name`), where a flag says the member.
///
/// A pointer stays where the member came from `--body`: there it is the name that leads to it.
pub(super) fn as_flags(mut failure: Failure, operation: &Operation, matches: &ArgMatches) -> Failure {
    let errors = failure.refusal.as_ref().and_then(|refusal| refusal.get("errors"));
    let errors = errors.and_then(Value::as_array).cloned().unwrap_or_default();
    for error in errors {
        let part = |member: &str| error.get(member).and_then(Value::as_str).unwrap_or_default();
        let said = format!("{}: {}", part("path"), part("message"));
        let Some(flag) = flag_of(part("path"), operation, matches) else {
            continue;
        };
        let meant = format!("{flag}: {}", part("message"));
        // Where one member is wrong, the message is what the list says once more.
        if failure.lines.first() == Some(&said) {
            failure.lines[0].clone_from(&meant);
            failure
                .lines
                .retain(|line| line.strip_prefix("  ") != Some(said.as_str()));
        }
        for line in &mut failure.lines {
            if line.strip_prefix("  ") == Some(said.as_str()) {
                *line = format!("  {meant}");
            }
        }
    }
    failure
}

fn flag_of(pointer: &str, operation: &Operation, matches: &ArgMatches) -> Option<String> {
    let segments: Vec<&str> = pointer.strip_prefix('/')?.split('/').collect();
    match segments.as_slice() {
        ["query", rest @ ..] if !rest.is_empty() => {
            let field = operation.query.iter().find(|field| leads_to(field, rest))?;
            return Some(with_place(
                &flag_name(operation, FlagTarget::Query, field),
                &rest[1..],
            ));
        }
        ["path", rest @ ..] if !rest.is_empty() => {
            let field = operation
                .path_parameters
                .iter()
                .find(|field| leads_to(field, rest))?;
            return Some(placeholder(field));
        }
        [member] | ["header", member] => {
            let known = TRIO
                .iter()
                .find(|(member_name, header, _)| member == member_name || member == header);
            if let Some((_, _, flag)) = known {
                return Some((*flag).to_owned());
            }
        }
        _ => {}
    }
    let body = operation.body.iter().flat_map(|body| &body.fields);
    if let Some(field) = body.into_iter().find(|field| leads_to(field, &segments)) {
        let id = FlagTarget::Body.id(field);
        let is_typed = matches.value_source(&id) == Some(ValueSource::CommandLine);
        let has_document = matches.try_contains_id("global.body").unwrap_or(false);
        if has_document && !is_typed {
            return None;
        }
        return Some(with_place(
            &flag_name(operation, FlagTarget::Body, field),
            &segments[field.path.len()..],
        ));
    }
    None
}

fn leads_to(field: &Field, segments: &[&str]) -> bool {
    segments.len() >= field.path.len()
        && field
            .path
            .iter()
            .zip(segments)
            .all(|(name, segment)| name == segment)
}

/// Adds which of several values is meant, or where in the value.
fn with_place(flag: &str, rest: &[&str]) -> String {
    match rest {
        [] => format!("--{flag}"),
        [number] => match number.parse::<usize>() {
            Ok(place) => format!("--{flag}, value {}", place.saturating_add(1)),
            Err(_) => format!("--{flag} at /{number}"),
        },
        rest => format!("--{flag} at /{}", rest.join("/")),
    }
}

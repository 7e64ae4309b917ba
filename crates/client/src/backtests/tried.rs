//! Which policies a run tried, for whoever reads what came of it.
//!
//! A run itself names them by their digest alone. Who made it from a file has the definitions; of other runs the server shows them to
//! those who may read the audit log, and keeps an entry of each look.

use super::view::RunView;
use crate::cli::{Client, Exit, Failure};
use serde_json::{Value, json};

/// The member of a saved run that holds it.
pub const MEMBER: &str = "tried";

/// Returns what a candidate of a file changes; nothing of a stored draft, which the server has.
pub fn of_candidate(candidate: &Value) -> Option<Value> {
    let policy = |family: &Value, definition: &Value| json!({ "family": family, "policyId": definition["id"], "definition": definition });
    let changes: Vec<Value> = match candidate["kind"].as_str()? {
        "inline" => vec![policy(&candidate["family"], &candidate["definition"])],
        kind @ ("changes" | "set") => {
            let member = if kind == "set" { "policies" } else { "changes" };
            let each = |change: &Value| match change.get("definition") {
                Some(definition) => policy(&change["family"], definition),
                None => json!({ "family": change["family"], "policyId": change["policyId"] }),
            };
            candidate[member].as_array()?.iter().map(each).collect()
        }
        _ => return None,
    };
    Some(json!({ "changes": changes }))
}

/// Asks the server what a run tried; where it does not say, says so.
///
/// Errors: those of a server that cannot be asked.
pub async fn of_run(client: &Client<'_>, run: &Value) -> Result<Value, Failure> {
    let id = RunView::read(run)?.id;
    let path = ["policies", "backtests", &id, "definitions"];
    match client.get_json(&path, &[]).await {
        Ok(answer) => Ok(json!({ "changes": answer["changes"] })),
        Err(failure) if matches!(failure.exit, Exit::Forbidden | Exit::NotFound) => {
            Ok(json!({ "withheld": true }))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the run as it is saved: as the server tells it, with what was tried.
pub fn with(run: &Value, tried: Option<&Value>) -> Value {
    let mut run = run.clone();
    if let (Some(tried), Some(members)) = (tried, run.as_object_mut()) {
        members.insert(MEMBER.to_owned(), tried.clone());
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_tries_is_known_without_a_server() {
        let definition = json!({ "id": "p", "action": "block" });
        let tried =
            json!({ "changes": [{ "family": "content", "policyId": "p", "definition": definition }] });
        let inline = json!({ "kind": "inline", "family": "content", "definition": definition });
        assert_eq!(of_candidate(&inline), Some(tried.clone()));
        let set = json!({ "kind": "set", "policies": [{ "family": "content", "definition": definition }] });
        assert_eq!(of_candidate(&set), Some(tried));
        let changes = json!({ "kind": "changes", "changes": [{ "op": "remove", "family": "access", "policyId": "q" }] });
        assert_eq!(
            of_candidate(&changes),
            Some(json!({ "changes": [{ "family": "access", "policyId": "q" }] }))
        );
        assert_eq!(of_candidate(&json!({ "kind": "draft", "policyId": "p" })), None);
    }
}

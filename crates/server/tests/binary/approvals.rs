//! What waits for somebody's yes, as the command line shows it.

use crate::harness::{homes, post, succeed};
use serde_json::{Value, json};

const BASE: &str = "/api/headless/v1/organizations/default";

fn made(port: u16, path: &str, token: &str, body: &Value) -> Value {
    let (status, answer) = post(port, &format!("{BASE}{path}"), token, &body.to_string());
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn what_waits_is_shown_once_with_the_words_that_decide_it() {
    for home in homes("approvals_watch") {
        let server = home.serve(&[]);
        let token = server.token();
        let watch = |words: &[&str]| {
            let mut command = home.command(&[&["approvals", "watch", "--once"], words].concat());
            command
                .env("PROVOST_URL", format!("http://127.0.0.1:{}", server.port))
                .env("PROVOST_ORGANIZATION", "default")
                .env("PROVOST_TOKEN", &token);
            succeed(command)
        };
        assert_eq!(watch(&[]), "");
        let policy = json!({
            "id": "ask-first", "name": "ask first", "action": "require_approval", "evaluateOn": ["pre_tool"],
            "acknowledgeBroadScope": true, "conditions": { "field": "tool.id", "op": "eq", "value": "Bash" },
        });
        made(
            server.port,
            "/content-policies",
            &token,
            &json!({ "definition": policy }),
        );
        let account = |name: &str, role: &str, scope: &str| {
            let body = json!({ "name": name, "permissionRole": role, "scopes": [scope] });
            made(server.port, "/service-accounts", &token, &body)
        };
        let agent = account("agent", "viewer", "policies:read");
        let hook = account("hook", "operator", "policies:decide");
        let attributes = json!({
            "identity.service_account_id": agent["serviceAccount"]["id"], "tool.id": "Bash",
            "tool.input": { "command": "rm -rf /srv/old" },
        });
        let body =
            json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes, "folder": "/srv" }] });
        let decided = made(
            server.port,
            "/policies/decisions",
            hook["token"]["token"].as_str().unwrap(),
            &body,
        );
        let id = decided["decisions"][0]["approval"]["requestId"].as_str().unwrap();
        let shown = watch(&[]);
        let first = format!("{id}  Bash\n");
        assert!(shown.starts_with(&first), "{shown}");
        assert!(shown.contains("\"command\": \"rm -rf /srv/old\""), "{shown}");
        assert!(shown.contains("  folder    /srv\n"), "{shown}");
        let yes = format!("  yes       provost approvals decide {id} --decision approve --binding-digest ");
        assert_eq!(shown.matches(&yes).count(), 1, "{shown}");
        let line: Value = serde_json::from_str(&watch(&["--output", "jsonl"])).unwrap();
        assert_eq!(line["id"], json!(id));
        assert_eq!(server.stop(), 0);
    }
}

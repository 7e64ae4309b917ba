//! Which machines are in somebody's name: whoever signs in is told of them, because an application that they once let in may have had one
//! enrolled, which stays (ADR 0118).

use super::super::connection::Connection;
use super::super::draft::target;
use super::super::failure::Failure;
use super::super::print::parsed;
use super::super::send::Sender;
use super::super::server::{Call, Server};
use super::super::terminal::Terminal;
use super::identity::Identity;
use http::{HeaderMap, Method};
use provost_words::url::{BASE, encoded};
use serde_json::Value;

/// Either shows them.
const SCOPES: [&str; 2] = ["fleet:enrol_self", "fleet:read"];
/// LIMIT: machines that are looked at. Nobody owns more than 32.
const MOST: &str = "100";

/// Tells somebody who signed in which machines are in their name. Where they may not see that, and where the server does not say it, it is
/// left out: the sign-in is done.
pub(super) async fn tell(connection: &Connection, identity: &Identity, terminal: &Terminal) {
    if !identity.scopes().iter().any(|scope| SCOPES.contains(scope)) {
        return;
    }
    let answer = ask(connection, &identity.organization, terminal).await;
    if let Some(line) = answer.ok().as_ref().and_then(said) {
        terminal.note(&line);
    }
}

async fn ask(connection: &Connection, organization: &str, terminal: &Terminal) -> Result<Value, Failure> {
    let path = BASE.replacen("{organizationId}", &encoded(organization).to_string(), 1);
    let limit = ("limit".to_owned(), MOST.to_owned());
    let call = Call {
        method: Method::GET,
        target: target(&format!("{path}/devices/own"), &[limit]),
        headers: HeaderMap::new(),
        body: None,
        is_download: false,
    };
    let server = Server::new(connection)?;
    let sender = Sender {
        server: &server,
        terminal,
        retries: 0,
        quiet: true,
        repeat: None,
        unmodified: false,
        weighs: false,
    };
    parsed(&sender.send(&call).await?)
}

/// Returns what is said of a list of machines, the newest first; nothing where none works.
fn said(answer: &Value) -> Option<String> {
    let text = |device: &Value, member: &str| {
        let text = device.get(member).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let all = answer.get("devices").and_then(Value::as_array)?;
    let works = |device: &&Value| text(device, "status").as_deref() != Some("retired");
    let count = all.iter().filter(works).count();
    let newest = all.iter().find(works)?;
    let machines = if count == 1 {
        "1 machine is".to_owned()
    } else {
        format!("{count} machines are")
    };
    let name = text(newest, "name").unwrap_or_default();
    let at = text(newest, "enrolledAt").unwrap_or_default();
    let with = text(newest, "enrolledWith").map_or(String::new(), |with| format!(" with {with}"));
    Some(format!(
        "{machines} in your name, the latest {name}, enrolled{with} at {at}: provost devices own"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn machines_that_work_are_said_and_the_newest_by_its_name() {
        let device = |status: &str, name: &str| json!({ "status": status, "name": name, "enrolledAt": "2026-11-27T21:00:00.000Z" });
        let of = |devices: Vec<Value>| said(&json!({ "devices": devices }));
        assert_eq!(of(vec![]), None);
        assert_eq!(of(vec![device("retired", "old")]), None);
        let mut by_another = device("pending", "unknown");
        by_another["enrolledWith"] = json!("Some client");
        let one = of(vec![device("retired", "old"), by_another.clone()]).unwrap();
        let expected = "1 machine is in your name, the latest unknown, enrolled with Some client at 2026-11-27T21:00:00.000Z";
        assert!(one.starts_with(expected), "{one}");
        let two = of(vec![device("active", "laptop"), by_another]).unwrap();
        assert!(
            two.starts_with("2 machines are in your name, the latest laptop, enrolled at"),
            "{two}"
        );
        assert_eq!(said(&json!({ "message": "an old server" })), None);
    }
}

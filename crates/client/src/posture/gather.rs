//! What the page says, asked for with operations that are there.

use super::view::{Account, Decisions, Machine, Part, Policy, Posture, Profile, Session, Sessions};
use crate::cli::{Client, Exit, Failure, Progress, Trail};
use provost_words::time::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DAY_MS: i64 = 86_400_000;
/// The action of what was only noted, which stopped nobody: monitored, or passed by a bypass.
const MONITORED: &str = "monitored";

/// How far back, and how much at most.
#[derive(Clone, Copy)]
pub struct Span {
    pub days: u16,
    pub max_events: u64,
}

/// Asks for everything.
///
/// Errors: those of a server that cannot be asked. What it refuses to the caller is a part of the answer.
pub async fn posture(client: &Client<'_>, now: Timestamp, span: Span) -> Result<Posture, Failure> {
    Ok(Posture {
        organization: client.organization().to_owned(),
        at: now,
        days: span.days,
        decisions: part(decisions(client, now, span).await)?,
        policies: part(policies(client).await)?,
        people: part(people(client).await)?,
        accounts: part(accounts(client, now).await)?,
        sessions: part(sessions(client).await)?,
        machines: part(machines(client).await)?,
    })
}

/// A token that the server does not know at all gets no page.
fn part<T>(asked: Result<T, Failure>) -> Result<Part<T>, Failure> {
    match asked {
        Ok(known) => Ok(Part::Known(known)),
        Err(failure) if failure.exit == Exit::Forbidden && failure.status == Some(403) => {
            Ok(Part::Withheld(failure.lines.first().cloned().unwrap_or_default()))
        }
        Err(failure) => Err(failure),
    }
}

async fn decisions(client: &Client<'_>, now: Timestamp, span: Span) -> Result<Decisions, Failure> {
    let today = now.as_ms().div_euclid(DAY_MS);
    let from = Timestamp::from_ms((today - i64::from(span.days) + 1) * DAY_MS).to_rfc3339();
    let mut found = Decisions::default();
    let (mut trail, mut cursor) = (Trail::default(), None::<String>);
    let mut progress = Progress::start(client.terminal, client.quiet, "events");
    let (mut read, mut lost) = (0, BTreeSet::new());
    loop {
        let mut query = vec![("from", from.as_str()), ("limit", "100")];
        if let Some(cursor) = &cursor {
            query.push(("cursor", cursor));
        }
        let page = client.get_json(&["policies", "history"], &query).await?;
        let events = list(&page, "events");
        for event in events {
            if read == span.max_events {
                found.read_to = text(event, "at");
                progress.clear();
                return Ok(found);
            }
            read += 1;
            count(&mut found, event);
        }
        // A part that cannot be read may stand on several pages.
        for part in list(&page, "unreadable") {
            let name = text(part, "name").unwrap_or_default();
            if lost.insert(name) {
                found.unreadable += part["events"].as_u64().unwrap_or(0);
            }
        }
        progress.show(read, None);
        let Some(next) = text(&page, "nextCursor") else {
            break;
        };
        // A page may be short or empty and go on: the walk ends by its places, each of which is new.
        trail.go_on("page", &next, events.len().max(1))?;
        cursor = Some(next);
    }
    progress.clear();
    Ok(found)
}

fn count(found: &mut Decisions, event: &Value) {
    let Some(action) = text(&event["decision"], "action") else {
        found.undecided += 1;
        return;
    };
    let is_enforced = text(&event["decision"], "mode").is_none_or(|mode| mode == "enforce");
    let action = if is_enforced || action == "allow" {
        action
    } else {
        MONITORED.to_owned()
    };
    found.all += 1;
    found.imported += u64::from(event["imported"] == true);
    let at = text(event, "at").and_then(|at| Timestamp::parse(&at));
    if let Some(at) = at {
        let day = found.by_day.entry(at.as_ms().div_euclid(DAY_MS)).or_default();
        *day.entry(action.clone()).or_default() += 1;
    }
    if let Some(tool) = text(event, "tool") {
        found.by_tool.entry(tool).or_default().add(&action);
    }
    if let Some(subject) = text(&event["subject"], "id") {
        found.by_subject.entry(subject).or_default().add(&action);
    }
    for id in list(&event["decision"], "policyIds")
        .iter()
        .filter_map(Value::as_str)
    {
        *found.by_policy.entry(id.to_owned()).or_default() += 1;
    }
    *found.by_action.entry(action).or_default() += 1;
}

async fn policies(client: &Client<'_>) -> Result<Vec<Policy>, Failure> {
    let query = [("enabled", "true"), ("limit", "100")];
    let all = client.get_all(&["policies"], &query, "policies").await?;
    let policy = |item: &Value| {
        Some(Policy {
            id: text(item, "id")?,
            name: text(item, "name"),
            family: text(item, "family").unwrap_or_default(),
            action: text(item, "action").unwrap_or_default(),
        })
    };
    Ok(all.iter().filter_map(policy).collect())
}

async fn people(client: &Client<'_>) -> Result<BTreeMap<String, String>, Failure> {
    let all = client
        .get_all(&["directory", "users"], &[("limit", "100")], "users")
        .await?;
    let person = |item: &Value| {
        let name = ["displayName", "loginName", "email"]
            .iter()
            .find_map(|member| text(item, member));
        Some((text(item, "id")?, name?))
    };
    Ok(all.iter().filter_map(person).collect())
}

async fn accounts(client: &Client<'_>, now: Timestamp) -> Result<Vec<Account>, Failure> {
    let all = client
        .get_all(&["service-accounts"], &[("limit", "100")], "serviceAccounts")
        .await?;
    let account = |item: &Value| {
        let works = |token: &&Value| token["revokedAt"].is_null();
        let ends = list(item, "tokens").iter().filter(works);
        let ends = ends.filter_map(|token| instant(token, "expiresAt"));
        Some(Account {
            id: text(item, "id")?,
            name: text(item, "name")?,
            role: text(item, "permissionRole").unwrap_or_default(),
            is_disabled: item["status"] == "disabled",
            is_orphaned: item["orphaned"] == true,
            ends_at: ends.filter(|end| *end > now).max(),
            used_at: instant(item, "lastUsedAt"),
        })
    };
    Ok(all.iter().filter_map(account).collect())
}

async fn sessions(client: &Client<'_>) -> Result<Sessions, Failure> {
    let query = [("status", "active"), ("limit", "100")];
    let page = client.get_json(&["mcp", "sessions"], &query).await?;
    let session = |item: &Value| Session {
        actor: ["actorDisplay", "serviceAccountId", "consoleUserId", "actorType"]
            .iter()
            .find_map(|member| text(item, member))
            .unwrap_or_default(),
        client: text(item, "mcpClientId").unwrap_or_default(),
        issued_at: text(item, "issuedAt").unwrap_or_default(),
        used_at: text(item, "lastUsedAt").unwrap_or_default(),
    };
    Ok(Sessions {
        total: page["total"].as_u64().unwrap_or(0),
        is_exact: page["totalIsExact"] != false,
        newest: list(&page, "sessions").iter().map(session).collect(),
    })
}

async fn machines(client: &Client<'_>) -> Result<Vec<Profile>, Failure> {
    let path = ["managed-config", "profiles"];
    let profiles = client.get_all(&path, &[("limit", "100")], "profiles").await?;
    let mut all = Vec::new();
    for profile in profiles.iter().filter(|profile| profile["status"] != "archived") {
        let Some(id) = text(profile, "id") else { continue };
        let path = ["managed-config", "profiles", &id, "targets"];
        let targets = client.get_all(&path, &[("limit", "100")], "targets").await?;
        let machine = |item: &Value| Machine {
            name: ["targetName", "targetId"]
                .iter()
                .find_map(|member| text(item, member))
                .unwrap_or_default(),
            state: text(item, "state").unwrap_or_default(),
            reported_at: text(item, "lastReportedAt").unwrap_or_default(),
            message: text(item, "message"),
        };
        all.push(Profile {
            name: text(profile, "name").unwrap_or(id),
            target: text(profile, "target").unwrap_or_default(),
            machines: targets.iter().map(machine).collect(),
        });
    }
    Ok(all)
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value
        .get(member)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text(value: &Value, member: &str) -> Option<String> {
    value.get(member)?.as_str().map(str::to_owned)
}

fn instant(value: &Value, member: &str) -> Option<Timestamp> {
    Timestamp::parse(value.get(member)?.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_counts_for_its_day_its_tool_its_person_and_its_policies() {
        let mut found = Decisions::default();
        let event = |action: &str| {
            json!({ "at": "2026-11-20T23:59:59.000Z", "tool": "Bash", "imported": true,
                "subject": { "kind": "user", "id": "usr_1" },
                "decision": { "action": action, "policyIds": ["p", "q"], "mode": "enforce" } })
        };
        count(&mut found, &event("block"));
        count(&mut found, &event("allow"));
        for mode in ["monitor", "bypass"] {
            let mut event = event("block");
            event["decision"]["mode"] = mode.into();
            count(&mut found, &event);
        }
        count(&mut found, &json!({ "at": "2026-11-20T00:00:00.000Z" }));
        assert_eq!((found.all, found.imported, found.undecided), (4, 4, 1));
        assert_eq!((found.by_tool["Bash"].all, found.by_tool["Bash"].stopped), (4, 1));
        assert_eq!((found.by_subject["usr_1"].all, found.by_policy["q"]), (4, 4));
        assert_eq!((found.by_action["block"], found.by_action[MONITORED]), (1, 2));
        assert_eq!(found.by_day[&20_777]["block"], 1);
    }

    #[test]
    fn what_is_refused_is_a_part_and_what_fails_is_a_failure() {
        let refused = |status| {
            let mut failure = Failure::new(Exit::Forbidden, "no");
            failure.status = Some(status);
            part::<()>(Err(failure))
        };
        assert!(matches!(refused(403), Ok(Part::Withheld(why)) if why == "no"));
        assert!(refused(401).is_err());
        assert!(part::<()>(Err(Failure::new(Exit::Unreachable, "gone"))).is_err());
    }
}

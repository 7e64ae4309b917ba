//! `GET …/audit/events`
//!
//! Keeps AL-5.

use super::model::{AuditEvent, Outcome, READERS, Term};
use super::show::show;
use super::store::{self, Filter};
use super::unknown::{self, Warning};
use provost_kernel::fence::Reader;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// LIMIT: entries that one call looks at (AL-5). A rare filter over a long log takes several calls.
const WINDOW: i64 = 20_000;

pub(super) struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ListQuery {
    /// Entries at or after this instant.
    from: Option<Timestamp>,
    /// Entries before this instant.
    to: Option<Timestamp>,
    /// Entries of this principal.
    actor_id: Option<Term>,
    /// Entries of this action, usually an operation's id.
    action: Option<Term>,
    /// Entries about this record.
    target_id: Option<Term>,
    /// Entries with this decision.
    outcome: Option<Outcome>,
    /// How many entries at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditEventPage {
    /// The entries, the newest first.
    events: Vec<AuditEvent>,
    /// Where the list goes on; absent at its end. A page may be short, or empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
    /// Why the list is perhaps not what was meant; absent when there is no reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Warning>,
}

impl Operation for List {
    const META: Meta = Meta::read("listHeadlessAuditEvents", "/audit/events", "audit")
        .access("audit:read", READERS)
        .says(
            "List audit entries, the newest first",
            "Every filter narrows the list; from is inclusive, to exclusive. One call looks at no more than \
             20000 entries: a page may therefore be short, or empty, although older entries match. The list \
             has ended when nextCursor is absent. Reading the log is counted, not recorded entry by entry. An entry \
             whose details are not for the caller says withheld, and actorId and targetId do not find it. The first page for \
             an action that nothing has and this version does not know is empty and says so in warnings.",
        )
        .command("audit", "list").columns(&["time", "actor.display as who", "action", "outcome.decision as outcome", "target.id as target", "target.type as of", "reason", "seq", "id", "actor.type as kind of caller", "actor.role as role", "outcome.status as status", "outcome.code as code", "sourceIp as from", "count"]);
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = AuditEventPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AuditEventPage> {
        let (query, keys, operation) = (&input.query, &ctx.services().keys, Self::META.id);
        let org = ctx.org();
        let before = match &query.cursor {
            Some(cursor) => cursor.open(keys, org, operation)?,
            None => store::length(ctx, org)? + 1,
        };
        let filter = Filter {
            from: query.from,
            to: query.to,
            actor_id: query.actor_id.as_ref().map(Term::as_str),
            action: query.action.as_ref().map(Term::as_str),
            target_id: query.target_id.as_ref().map(Term::as_str),
            outcome: query.outcome.map(Outcome::as_str),
        };
        let lowest = (before - WINDOW).max(1);
        let (events, seen) = found(ctx, &filter, before, lowest, query.limit.get())?;
        let next_cursor = (seen > 1).then(|| Cursor::issue(keys, org, operation, seen));
        let warning = match (filter.action, &query.cursor) {
            (Some(action), None) if events.is_empty() => unknown::of_action(ctx, action, before, lowest)?,
            _ => None,
        };
        Ok(AuditEventPage {
            events,
            next_cursor,
            warnings: warning.into_iter().collect(),
        })
    }
}

/// Returns the entries that the caller finds, and the place of the last one that was looked at.
///
/// INVARIANT FE-2: what a filter compares with and the caller may not see decides nothing, neither the entries of a page
/// nor where it ends: such entries are passed over as if the filter had not matched them.
fn found(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    before: i64,
    lowest: i64,
    limit: i64,
) -> Result<(Vec<AuditEvent>, i64)> {
    let mut reader = Reader::of(ctx.actor());
    let names = filter.actor_id.is_some() || filter.target_id.is_some();
    let (mut events, mut before) = (Vec::new(), before);
    loop {
        let records = store::list(ctx, filter, before, lowest, limit)?;
        for record in &records {
            let shown = show(ctx, &mut reader, record)?;
            if names && !shown.names {
                continue;
            }
            events.push(shown.event);
            if is_of(events.len(), limit) {
                return Ok((events, record.seq));
            }
        }
        match records.last() {
            Some(last) if is_of(records.len(), limit) => before = last.seq,
            _ => return Ok((events, lowest)),
        }
    }
}

fn is_of(count: usize, limit: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count == limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::testing::{HIDDEN, START, THING, World, on_every_store};
    use provost_kernel::audit::{AuditRecord, Decision};
    use provost_kernel::auth::{Actor, OrganizationId};
    use provost_kernel::entropy::UnitRng;
    use serde_json::Value;

    const LIST: &str = "listHeadlessAuditEvents";

    type EntryFilter = Box<dyn Fn(&Value) -> bool>;

    /// Reads the whole list, page by page; returns the entries and how many calls it took.
    fn read_all(world: &World, filter: &str, limit: usize) -> (Vec<Value>, usize) {
        read_all_as(world, "auditor", filter, limit)
    }

    fn read_all_as(world: &World, who: &str, filter: &str, limit: usize) -> (Vec<Value>, usize) {
        let (mut events, mut calls, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let reply = world.get(who, LIST, &[], &format!("{filter}&limit={limit}{cursor}"));
            assert_eq!(reply.status, 200, "{}", reply.text);
            let page = reply.json();
            let found = page["events"].as_array().unwrap();
            assert!(found.len() <= limit);
            events.extend(found.iter().cloned());
            calls += 1;
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (events, calls),
            }
        }
    }

    fn varied_notes(count: usize) -> Vec<AuditRecord> {
        let acme = OrganizationId::parse("acme").unwrap();
        let mut rng = UnitRng::new([9; 32]);
        let mut draw = move |below: u8| {
            let mut byte = [0];
            rng.fill(&mut byte);
            byte[0] % below
        };
        let decisions = [
            Decision::Allowed,
            Decision::Denied,
            Decision::Refused,
            Decision::Replayed,
            Decision::Failed,
        ];
        let note = |place: usize| {
            let time = START
                .plus_secs(i64::try_from(place).unwrap())
                .plus_ms(i64::from(draw(50)) * 100);
            let mut note = AuditRecord::new(acme.clone(), time, format!("action.{}", draw(3)));
            if draw(4) > 0 {
                let mut actor = Actor::system(acme.clone());
                actor.id = format!("sa_{}", draw(3));
                note.actor = Some(actor);
            }
            if draw(4) > 0 {
                note.target = Some((&THING, format!("thing {}", draw(3))));
            }
            note.decision = decisions[usize::from(draw(5))];
            note
        };
        (0..count).map(note).collect()
    }

    #[test]
    fn every_filter_finds_what_a_naive_reading_finds() {
        on_every_store("audit_list", |world| {
            world.append(&OrganizationId::parse("acme").unwrap(), &varied_notes(150));
            let all: Vec<Value> = world
                .exported()
                .iter()
                .map(|line| serde_json::from_str(line).unwrap())
                .rev()
                .collect();
            assert_eq!(all.len(), 150);
            let (from, to) = (START.plus_secs(40).plus_ms(500), START.plus_secs(90));
            let word =
                |value: &Value, pointer: &str| value.pointer(pointer).map(|v| v.as_str().unwrap().to_owned());
            let is = |pointer: &'static str, wanted: String| {
                move |entry: &Value| word(entry, pointer).as_ref() == Some(&wanted)
            };
            let mut cases: Vec<(String, EntryFilter)> = vec![
                (String::new(), Box::new(|_| true)),
                (format!("from={from}&to={to}"), {
                    let time =
                        move |entry: &Value| Timestamp::parse(entry["time"].as_str().unwrap()).unwrap();
                    Box::new(move |entry| (from..to).contains(&time(entry)))
                }),
                ("actorId=sa_1&outcome=denied&action=action.2".into(), {
                    let (actor, outcome) = (
                        is("/actor/id", "sa_1".into()),
                        is("/outcome/decision", "denied".into()),
                    );
                    let action = is("/action", "action.2".into());
                    Box::new(move |entry| actor(entry) && outcome(entry) && action(entry))
                }),
                ("actorId=nobody".into(), Box::new(|_| false)),
            ];
            for n in 0..3 {
                cases.push((
                    format!("actorId=sa_{n}"),
                    Box::new(is("/actor/id", format!("sa_{n}"))),
                ));
                cases.push((
                    format!("action=action.{n}"),
                    Box::new(is("/action", format!("action.{n}"))),
                ));
                cases.push((
                    format!("targetId=thing+{n}"),
                    Box::new(is("/target/id", format!("thing {n}"))),
                ));
            }
            for decision in ["allowed", "denied", "refused", "idempotent_replay", "failed"] {
                let wanted = is("/outcome/decision", decision.into());
                cases.push((format!("outcome={decision}"), Box::new(wanted)));
            }
            for (filter, wanted) in &cases {
                for limit in [1, 7, 100] {
                    let (mut found, _) = read_all(world, filter, limit);
                    // The export above is an entry by now.
                    found.retain(|entry| entry["seq"].as_i64().unwrap() <= 150);
                    let expected: Vec<&Value> = all.iter().filter(|entry| wanted(entry)).collect();
                    assert_eq!(
                        found.iter().collect::<Vec<_>>(),
                        expected,
                        "{filter} limit={limit}"
                    );
                }
            }
        });
    }

    #[test]
    fn an_action_that_nobody_knows_and_nothing_has_is_asked_about() {
        on_every_store("audit_unknown_action", |world| {
            world.append(&OrganizationId::parse("acme").unwrap(), &varied_notes(20));
            let note = AuditRecord::new(OrganizationId::parse("acme").unwrap(), START, "action.of_before");
            world.append(&OrganizationId::parse("acme").unwrap(), &[note]);
            let list = |filter: &str| world.get("operator", LIST, &[], filter).json();
            let asked = list("action=actoin.1");
            assert_eq!(asked["events"], serde_json::json!([]));
            let warning = &asked["warnings"][0];
            assert_eq!(warning["code"], "unknown_action");
            assert_eq!(warning["nearest"].as_array().unwrap().len(), 3);
            assert!(
                warning["nearest"]
                    .as_array()
                    .unwrap()
                    .contains(&"action.1".into()),
                "{warning}"
            );
            let message = warning["message"].as_str().unwrap();
            assert!(
                message.starts_with("no entry has the action actoin.1, and"),
                "{message}"
            );
            // Known and never stored; stored by an earlier version; of that name, and left out by another filter.
            for filter in [
                "action=test.went_back",
                "action=action.of_before",
                "action=action.of_before&from=2030-01-01T00:00:00.000Z",
                "action=action.1&outcome=denied&actorId=nobody",
            ] {
                assert_eq!(list(filter).get("warnings"), None, "{filter}");
            }
        });
    }

    /// Proves FE-2.
    #[test]
    fn no_filter_finds_an_entry_by_what_is_withheld() {
        on_every_store("audit_oracle", |world| {
            let acme = OrganizationId::parse("acme").unwrap();
            let mut notes = varied_notes(120);
            for (place, note) in notes.iter_mut().enumerate() {
                // Of two entries one is hidden; its actor and its target stand in no other.
                if place % 2 == 0 {
                    let mut actor = Actor::system(acme.clone());
                    actor.id = "sa_hidden".into();
                    note.actor = Some(actor);
                    note.target = Some((&HIDDEN, "a hidden name".into()));
                }
            }
            world.append(&acme, &notes);
            let list = |filter: &str| world.get("operator", LIST, &[], filter);
            let seen = read_all_as(world, "operator", "", 50).0;
            assert_eq!(seen.len(), 120);
            for limit in [1, 7, 100] {
                // The answers are the same bytes, so neither pages nor cursors tell a hit from a miss.
                for (hidden, nobody) in [
                    ("actorId=sa_hidden", "actorId=sa_nobody"),
                    ("targetId=a+hidden+name", "targetId=no+name"),
                    (
                        "actorId=sa_hidden&targetId=a+hidden+name",
                        "actorId=sa_1&targetId=no+name",
                    ),
                    (
                        "actorId=sa_hidden&outcome=denied",
                        "actorId=sa_nobody&outcome=denied",
                    ),
                ] {
                    let (hit, miss) = (
                        list(&format!("{hidden}&limit={limit}")),
                        list(&format!("{nobody}&limit={limit}")),
                    );
                    assert_eq!(
                        (hit.status, &hit.text),
                        (200, &miss.text),
                        "{hidden} limit={limit}"
                    );
                    assert_eq!(hit.json()["events"], serde_json::json!([]));
                }
                for n in 0..3 {
                    for (filter, pointer, value) in [
                        (format!("actorId=sa_{n}"), "/actor/id", format!("sa_{n}")),
                        (format!("targetId=thing+{n}"), "/target/id", format!("thing {n}")),
                        // What is kept of every entry finds every entry.
                        (format!("action=action.{n}"), "/action", format!("action.{n}")),
                    ] {
                        let found = read_all_as(world, "operator", &filter, limit).0;
                        let expected = seen.iter();
                        let expected: Vec<&Value> = expected
                            .filter(|entry| entry.pointer(pointer).is_some_and(|found| *found == value))
                            .collect();
                        assert_eq!(
                            found.iter().collect::<Vec<_>>(),
                            expected,
                            "{filter} limit={limit}"
                        );
                        assert!(!found.is_empty());
                    }
                }
            }
            // Whoever reads everything finds it.
            let found = read_all(world, "actorId=sa_hidden&targetId=a+hidden+name", 7).0;
            assert_eq!(found.len(), 60);
        });
    }

    /// Proves AL-5.
    #[test]
    fn a_rare_entry_is_found_in_bounded_steps() {
        on_every_store("audit_window", |world| {
            let acme = OrganizationId::parse("acme").unwrap();
            world.append(&acme, &[AuditRecord::new(acme.clone(), START, "test.rare")]);
            world.grow(45_000);
            let first = world.get("admin", LIST, &[], "action=test.rare").json();
            assert_eq!(
                first["events"],
                serde_json::json!([]),
                "the window is full before the entry is reached"
            );
            let (found, calls) = read_all(world, "action=test.rare", 50);
            assert_eq!((found.len(), calls), (1, 3));
            assert_eq!(found[0]["seq"], 1);
        });
    }

    #[test]
    fn a_cursor_belongs_to_its_list_and_organization() {
        on_every_store("audit_cursor", |world| {
            world.grow(3);
            let page = world.get("admin", LIST, &[], "limit=1").json();
            let cursor = page["nextCursor"].as_str().unwrap();
            let query = format!("cursor={cursor}");
            assert_eq!(
                world.get("admin", LIST, &[], &query).json()["events"]
                    .as_array()
                    .unwrap()
                    .len(),
                2
            );
            for (who, query) in [
                ("stranger", query.as_str()),
                ("admin", "cursor=AAAAAAAAAAA"),
                ("admin", "cursor="),
            ] {
                let refused = world.get(who, LIST, &[], query).json();
                assert_eq!(refused["errors"][0]["path"], "/query/cursor", "{query}");
            }
        });
    }

    #[test]
    fn reading_is_for_three_roles_and_leaves_no_entry() {
        on_every_store("audit_rights", |world| {
            assert_eq!(
                world.get("viewer", LIST, &[], "").json()["code"],
                "role_forbidden"
            );
            assert_eq!(
                world.get("narrow", LIST, &[], "").json()["code"],
                "insufficient_scope"
            );
            world.settle();
            for who in ["operator", "auditor", "admin", "stranger"] {
                assert_eq!(world.get(who, LIST, &[], "").status, 200);
            }
            world.settle();
            let (events, _) = read_all(world, "", 50);
            let seen: Vec<&Value> = events.iter().map(|e| &e["outcome"]["decision"]).collect();
            assert_eq!(seen, ["denied", "denied"], "the two denials and nothing else");
            for query in [
                "outcome=good",
                "from=yesterday",
                "actorId=",
                "action=a%00b",
                "limit=101",
            ] {
                assert_eq!(world.get("admin", LIST, &[], query).status, 400, "{query}");
            }
        });
    }
}

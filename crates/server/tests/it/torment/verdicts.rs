//! No change of its words or bytes makes the answer to a blocked event weaker (E1).
//!
//! A random set of policies guards a small organization. Each event that it stops is changed in the ways of a catalogue,
//! and the organization is changed around it: the answer may get stronger, never weaker. What merely says the same in
//! other words must be answered the same.
//!
//! ```text
//!   policies by chance ─► events ─► answers
//!                            │ other spelling, other bytes, missing, more      ┐
//!                            │ suspended, namesakes, disabled, deleted, back   ├─► answers, each at least as strong
//!                            │ all at once in one request, each by itself      ┘
//!                            │ recorded as they were decided live              ┐
//!                            ├ imported as somebody else's past                ┴─► backtests: as strong, or unknown
//!                            └ the same, by the bundles of devices             ──► as the server says, or asked about and as strong
//! ```
//!
//! INVARIANT MV-1: neither another spelling, other bytes, a suspension, a namesake nor something missing makes a
//! verdict weaker: live, in a batch, and recorded or imported and judged again by a backtest.
//! INVARIANT MV-2: no device says with certainty anything else than the server says of the same event, in whatever words and bytes, nor holds
//! to anything weaker where it would ask; and what merely says the same in other words it answers the same.
//!
//! Absent on purpose: what a change of meaning does (another command, another person); that is for the tests of each
//! operator. Backtests of calls of denied servers: the past is judged by policies, and a standing is none. A key of a server that nobody
//! says: a denial is of the key that is said (IN-13).

mod devices;

use super::run::{self, Progress};
use crate::areas::directory;
use crate::areas::fleet::Machine;
use crate::areas::history::NDJSON;
use crate::areas::inventory::server;
use crate::policy::backtests_worker::{Worker, ended};
use crate::policy::decisions::{ask, content, decide, policy, rego, words};
use crate::support::{App, Dice, seed};
use devices::{Devices, Said};
use provost_kernel::Timestamp;
use provost_policy::Family;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pairs that the suite compares on each engine.
const SMALL: u64 = 2_000;

const LOGIN: &str = "zo\u{eb}@acme.test";
const ADDRESS: &str = "zoe.b@mail.test";
const OTHER: &str = "ben@acme.test";
const ROBOT: &str = "Build Robot";
/// A server that is denied, and one that is not.
const DENIED: &str = "npm:@evil/files";
const KNOWN: &str = "npm:@acme/files";
const PACKAGE: &str = "mcp.package_id";
/// The one change after which a device may ask about what it was sure of: whether another server has just that key it does not know.
const KEY_RESPELT: &str = "another spelling of the server's key";

/// Who and what is in the organization.
struct World {
    zoe: String,
    group: String,
    robot: String,
    skill: String,
    devices: Devices,
}

impl World {
    async fn of(app: &App) -> Self {
        let body = json!({ "loginName": LOGIN, "email": ADDRESS });
        let made = app.write("POST", "/directory/users", body).await;
        let zoe = made.ok()["user"]["id"].as_str().unwrap().to_owned();
        let other = directory::user(app, OTHER).await;
        let staff = directory::group(app, "staff").await;
        let path = format!("/directory/groups/{staff}/members/{other}");
        app.write("PUT", &path, json!({})).await.ok();
        let group = directory::group(app, "contractors").await;
        let path = format!("/directory/groups/{group}/members/{zoe}");
        app.write("PUT", &path, json!({})).await.ok();
        let (robot, _) = app.account(ROBOT, "viewer", &[]).await;
        let skill = app.skill("deploy").await;
        let devices = Devices::of(app, &zoe).await;
        deny(app, devices.first()).await;
        Self {
            zoe,
            group,
            robot,
            skill,
            devices,
        }
    }
}

/// Has a machine find the servers, and denies one of them.
async fn deny(app: &App, machine: &Machine) {
    let found = json!([server("bad", DENIED, false), server("good", KNOWN, false)]);
    machine.has(app, "zoe", &found).await.ok();
    let listed = app.get("/inventory/mcp-servers").await.ok()["servers"].clone();
    let all = listed.as_array().unwrap();
    let denied = all.iter().find(|one| one["key"] == DENIED).unwrap();
    let path = format!(
        "/inventory/mcp-servers/{}/standing",
        denied["id"].as_str().unwrap()
    );
    app.write("POST", &path, json!({ "standing": "denied" }))
        .await
        .ok();
}

const MODULE: &str = "package forge.content\n\nimport rego.v1\n\nmatch := {\"matched\": true} if {\n\tinput.tool.id == \"Bash\"\n\tcontains(input.tool.input.command, \"rm -rf\")\n}\n";

/// Conditions of modules that compare ids with words (RG-5).
const COMPARED: [&str; 6] = [
    "input.identity.user_id == \"zo\u{eb}@acme.test\"",
    "input.identity.user_id in {\"ZOE.B@mail.test\", \"nobody@acme.test\"}",
    "endswith(input.identity.user_id, \"@mail.test\")",
    "input.identity.service_account_id == \"build robot\"",
    "\"Contractors\" in input.identity.group_ids",
    "{ input.tool.id == \"Bash\"; not input.identity.user_id in {\"ben@acme.test\"} }",
];

/// A guard of resources that is in force, or only reports.
fn resource(id: &str, enforcement: &str, condition: &Value) -> (Family, Value) {
    let definition = json!({ "id": id, "name": id, "action": "block", "enforcement": enforcement,
        "acknowledgeBroadScope": true, "conditions": condition });
    (Family::Resource, definition)
}

/// The word of the trial that a guard's id belongs to.
fn trial_of(id: &str) -> &str {
    id.split_once('-').map_or(id, |(trial, _)| trial)
}

/// One guard, by chance.
fn guard(dice: &mut Dice, id: &str) -> (Family, Value) {
    let action = *dice.pick(&["block", "block", "require_approval", "redact", "flag_for_review"]);
    let of = |change: Value| (Family::Content, content(id, action, &change));
    let scoped = |scope: Value| of(json!({ "appliesTo": scope, "acknowledgeBroadScope": null }));
    let user = |op: &str, value: &str| json!({ "field": "identity.user_id", "op": op, "value": value });
    let command = json!({ "all": [
        { "field": "tool.id", "op": "eq", "value": "Bash" },
        { "field": "tool.input.command", "op": "contains", "value": "rm -rf" },
    ] });
    let package = |op: &str, value: Value| json!({ "field": PACKAGE, "op": op, "value": value });
    match dice.below(25) {
        // Servers by their keys.
        23 => of(json!({ "conditions": package("eq", KNOWN.into()) })),
        24 => of(json!({ "conditions": { "all": [
            { "field": PACKAGE, "op": "exists" }, { "not": package("in", json!([KNOWN])) } ] } })),
        // What the whole of a document says, and a name by a pattern.
        21 => of(json!({ "conditions": { "field": "tool.input", "op": "contains", "value": "/srv" } })),
        22 => of(json!({ "conditions": { "field": "tool.id", "op": "matches", "value": "^(Bash|Zsh)$" } })),
        0 => scoped(json!({ "users": [LOGIN] })),
        1 => scoped(json!({ "groups": ["contractors"] })),
        2 => scoped(json!({ "serviceAccounts": [ROBOT] })),
        3 => of(json!({ "conditions": user("eq", LOGIN) })),
        4 => of(json!({ "conditions": { "not": user("neq", ADDRESS) } })),
        5 => of(json!({ "conditions": { "all": [
            { "field": "identity.user_id", "op": "exists" }, { "not": user("eq", OTHER) } ] } })),
        6 => of(
            json!({ "conditions": { "field": "identity.user_id", "op": "in", "value": [LOGIN, "nobody@acme.test"] } }),
        ),
        7 => of(json!({ "conditions": command })),
        8 => of(json!({ "conditions": command, "except": user("eq", OTHER) })),
        12 => of(json!({ "conditions": { "eventCount": {
            "within": "1h", "where": { "field": "tool.id", "op": "eq", "value": "Bash" }, "op": "gte", "value": 1,
        } } })),
        9 => (Family::Content, rego(id, MODULE)),
        13 | 14 => {
            let condition = *dice.pick(&COMPARED);
            let module = format!(
                "package forge.content\nimport rego.v1\nmatch := {{\"matched\": true}} if {condition}\n"
            );
            (Family::Content, rego(id, &module))
        }
        15 | 16 => {
            let condition = if dice.chance(2) {
                user("eq", LOGIN)
            } else {
                json!({ "not": user("neq", ADDRESS) })
            };
            let enforcement: &str = dice.pick::<&str>(&["enforce", "monitor"]);
            resource(id, enforcement, &condition)
        }
        17 => of(json!({ "conditions": command,
            "except": { "field": "identity.group_ids", "op": "contains", "value": "staff" } })),
        18 => of(json!({ "conditions": { "all": [
            command, { "not": { "field": "identity.group_ids", "op": "contains", "value": "staff" } } ] } })),
        19 => (
            Family::SkillAcl,
            json!({ "id": id, "skillId": "deploy", "subjects": { "groups": ["staff"] }, "effect": "allow" }),
        ),
        20 => of(json!({ "conditions": { "eventCount": {
            "within": "1h", "where": { "field": "event.kind", "op": "eq", "value": trial_of(id) }, "op": "gte", "value": 1,
        } } })),
        10 => (
            Family::SkillAcl,
            json!({ "id": id, "skillId": "deploy", "subjects": { "users": [LOGIN] }, "effect": "block" }),
        ),
        _ => (
            Family::SkillAcl,
            json!({ "id": id, "skillId": "deploy", "subjects": { "users": [OTHER] }, "effect": "allow" }),
        ),
    }
}

/// One event, by chance.
fn event(dice: &mut Dice, world: &World) -> Value {
    let who = match dice.below(3) {
        0 => json!({ "identity.user_id": LOGIN }),
        1 => json!({ "identity.user_id": world.zoe }),
        _ => json!({ "identity.service_account_id": ROBOT }),
    };
    if dice.chance(4) {
        let mut attributes = who;
        attributes["skill.id"] = (*dice.pick(&["deploy", world.skill.as_str()])).into();
        return json!({ "occasion": "skill", "attributes": attributes });
    }
    let mut attributes = who;
    if dice.chance(6) {
        attributes["request.http.method"] = "DELETE".into();
        return json!({ "occasion": "resource", "attributes": attributes });
    }
    if dice.chance(4) {
        attributes["tool.id"] = "mcp__files__read".into();
        attributes["mcp.server_id"] = "files".into();
        attributes["mcp.tool_id"] = "read".into();
        attributes[PACKAGE] = (*dice.pick(&[DENIED, DENIED, KNOWN])).into();
        return json!({ "occasion": "pre_tool", "attributes": attributes });
    }
    attributes["tool.id"] = "Bash".into();
    attributes["tool.input"] = json!({ "command": "rm -rf /srv", "timeout": 5 });
    json!({ "occasion": "pre_tool", "attributes": attributes })
}

/// What a change does to the meaning of an event.
#[derive(Clone, Copy, PartialEq, Debug)]
enum MeaningChange {
    /// It says the same: the answer is the same.
    Same,
    /// Somebody could not say, or it says more: the answer is at least as strong.
    Doubtful,
}

/// Returns other spellings of a word that names somebody.
fn spelling(dice: &mut Dice, word: &str) -> String {
    match dice.below(9) {
        6 => format!("{word}\0\u{7}\u{2800}"),
        7 => format!("\u{1}{word}\u{fff9}\u{7f}"),
        8 => word.chars().flat_map(|letter| [letter, '\u{600}']).collect(),
        0 => word.to_uppercase(),
        1 => word.replace('\u{eb}', "e\u{308}"),
        2 => format!("  {word}\u{3000}"),
        3 => word.chars().flat_map(|letter| [letter, '\u{200b}']).collect(),
        4 => format!("\u{feff}{word}\u{ad}"),
        _ => format!(" {}\u{200d}", word.to_lowercase()),
    }
}

/// Changes one event, by chance; nothing where this change does not apply.
#[expect(clippy::too_many_lines, reason = "one catalogue")]
fn change(dice: &mut Dice, world: &World, event: &Value) -> Option<(&'static str, MeaningChange, Value)> {
    use MeaningChange::{Doubtful, Same};
    let mut changed = event.clone();
    let attributes = changed["attributes"].as_object_mut()?;
    let named = [
        "identity.user_id",
        "identity.service_account_id",
        "skill.id",
        PACKAGE,
    ];
    let present: Vec<&str> = named
        .into_iter()
        .filter(|name| attributes.contains_key(*name))
        .collect();
    let field = *dice.pick(&present);
    let is_key = field == PACKAGE;
    let input = attributes.get("tool.input").cloned();
    let text =
        |change: &dyn Fn(String) -> String| input.as_ref().map(|json| Value::from(change(json.to_string())));
    let (name, meaning) = match dice.below(25) {
        21 if attributes.contains_key("tool.id") => {
            let spelt = spelling(dice, attributes["tool.id"].as_str()?);
            attributes.insert("tool.id".to_owned(), spelt.into());
            ("another spelling of the tool", Same)
        }
        22 => {
            let escaped = text(&|json| json.replace(' ', "\\u0020").replace('r', "\\u0072"))?;
            attributes.insert("tool.input".to_owned(), escaped);
            ("an input with escapes", Same)
        }
        23 if field == "skill.id" => {
            let called = [
                "deploy@feature/x".to_owned(),
                "Deploy@sha512-a/b==".to_owned(),
                format!("{}@x/y", world.skill),
            ];
            let called = dice.pick(&called).clone();
            attributes.insert(field.to_owned(), called.into());
            ("a version with a slash", Same)
        }
        24 if attributes.contains_key("tool.input") => {
            attributes.insert(
                "tool.input.command".to_owned(),
                (*dice.pick(&["", " ", "\u{200b}"])).into(),
            );
            ("a blank command beside the input", Same)
        }
        0 | 1 => {
            let spelt = spelling(dice, attributes[field].as_str()?);
            attributes.insert(field.to_owned(), spelt.into());
            (if is_key { KEY_RESPELT } else { "another spelling" }, Same)
        }
        2 if field == "identity.user_id" => {
            let called = *dice.pick(&[LOGIN, ADDRESS, world.zoe.as_str()]);
            attributes.insert(field.to_owned(), called.into());
            ("another word of the user", Same)
        }
        3 if field == "identity.service_account_id" => {
            attributes.insert(field.to_owned(), world.robot.as_str().into());
            ("the id of the account", Same)
        }
        4 if field == "skill.id" => {
            let called = *dice.pick(&["deploy@1.0.0", "Deploy", "DEPLOY ", world.skill.as_str()]);
            attributes.insert(field.to_owned(), called.into());
            ("another word of the skill", Same)
        }
        5 => {
            attributes.insert("tool.input".to_owned(), text(&|json| json)?);
            ("the input as its text", Same)
        }
        6 => {
            let members: Map<String, Value> = input?.as_object()?.clone().into_iter().rev().collect();
            attributes.insert("tool.input".to_owned(), members.into());
            ("members in another order", Same)
        }
        7 => {
            attributes.insert("event.title".to_owned(), "a title that nobody reads".into());
            attributes.insert("llm.model".to_owned(), "some-model".into());
            ("more attributes", Same)
        }
        8 => {
            let cut = |json: String| json.trim_end_matches('}').to_owned();
            let more: [&dyn Fn(String) -> String; 8] = [
                &|json| format!("{},}}", cut(json)),
                &|json| format!("\u{feff}{json}"),
                &|json| format!("{json} and more"),
                &|json| format!("[{json}]"),
                &|json| format!("{},\"command\":\"ls\"}}", cut(json)),
                &|json| format!("{},\"x\":{}1{}}}", cut(json), "[".repeat(200), "]".repeat(200)),
                &|json| format!("{},\"x\":1e999}}", cut(json)),
                &|json| format!("{},\"x\":\"\\ud800\"}}", cut(json)),
            ];
            let which = dice.below(more.len());
            attributes.insert("tool.input".to_owned(), text(more[which])?);
            ("a text that parsers disagree about", Doubtful)
        }
        9 => {
            attributes.insert("tool.input".to_owned(), Value::Array(vec![input?]));
            ("an array around the input", Doubtful)
        }
        10 => {
            let mut members = input?;
            members["command"] = json!(["rm", "-rf", "/srv"]);
            attributes.insert("tool.input".to_owned(), members);
            ("the command as words", Doubtful)
        }
        11 if !is_key => {
            attributes.remove(field);
            changed["missing"] = json!([field]);
            ("a name that is missing", Doubtful)
        }
        12 => {
            attributes.remove("tool.input")?;
            changed["missing"] = json!(["tool.input"]);
            ("an input that is missing", Doubtful)
        }
        13 if !is_key => {
            attributes.insert(field.to_owned(), " \u{200b} ".into());
            ("a name that is empty", Doubtful)
        }
        14 if field == "identity.user_id" => {
            attributes.insert("identity.group_ids".to_owned(), json!([]));
            ("no groups", Same)
        }
        17 => {
            let claimed = *dice.pick(&["staff", "contractors", "nothing"]);
            attributes.insert("identity.group_ids".to_owned(), json!([claimed]));
            ("groups that are claimed", Same)
        }
        18 | 19 if field == "identity.user_id" => {
            let claimed = *dice.pick(&["staff", "contractors", "nothing"]);
            attributes.insert("identity.group_ids".to_owned(), json!([claimed]));
            if dice.chance(2) {
                attributes.insert(field.to_owned(), "\u{200b}".into());
            } else {
                attributes.remove(field);
                changed["missing"] = json!([field]);
            }
            ("groups that are claimed of somebody", Doubtful)
        }
        15 => {
            changed["missing"] = json!(["event.severity"]);
            ("an attribute that nobody reads is missing", Same)
        }
        _ => {
            changed["session"] = "another session".into();
            ("another session", Same)
        }
    };
    Some((name, meaning, changed))
}

/// How to take back a change of the organization: requests, in this order.
type Back = Vec<(&'static str, String, Value)>;

/// Changes the organization around the events, and returns how to take it back; nothing where all is as it was.
async fn turn(app: &App, world: &World, which: usize) -> (&'static str, Back) {
    let user = |rest: &str| format!("/directory/users/{}{rest}", world.zoe);
    let again = [
        (
            "POST",
            "/directory/users".to_owned(),
            json!({ "loginName": LOGIN, "email": ADDRESS }),
        ),
        (
            "PUT",
            format!("/directory/groups/{}/members/{}", world.group, world.zoe),
            json!({}),
        ),
    ];
    match which {
        1 => {
            app.write("POST", &user("/suspend"), json!({})).await.ok();
            ("suspended", vec![("POST", user("/reactivate"), json!({}))])
        }
        2 | 3 => {
            let body = if which == 2 {
                json!({ "loginName": LOGIN, "directoryId": "second" })
            } else {
                json!({ "loginName": "carol@else.test", "email": LOGIN, "directoryId": "second" })
            };
            let made = app.write("POST", "/directory/users", body).await;
            let id = made.ok()["user"]["id"].as_str().unwrap().to_owned();
            let gone = format!("/directory/users/{id}");
            ("a namesake", vec![("DELETE", gone, json!({}))])
        }
        4 => {
            let path = |verb: &str| format!("/service-accounts/{}/{verb}", world.robot);
            app.write("POST", &path("disable"), json!({})).await.ok();
            ("disabled", vec![("POST", path("enable"), json!({}))])
        }
        5 => {
            app.delete(&user("")).await.ok();
            ("deleted", again.into())
        }
        6 => {
            app.delete(&user("")).await.ok();
            take_back(app, &again).await;
            ("dropped and back", Vec::new())
        }
        7 => {
            app.delete(&user("")).await.ok();
            let [create, member] = again;
            take_back(app, &[create]).await;
            ("dropped and back, and nobody has set the groups", vec![member])
        }
        _ => ("nothing else", Vec::new()),
    }
}

/// Takes back a change of the organization; whoever comes back is who they were.
async fn take_back(app: &App, back: &[(&'static str, String, Value)]) {
    for (method, path, body) in back {
        if *method == "DELETE" {
            // A namesake that was deleted once has the id that it had.
            app.delete(path).await.ok();
        } else {
            app.write(method, path, body.clone()).await.ok();
        }
    }
}

/// Returns the policies in monitor mode that a decision reports.
fn reported(decision: &Value) -> Vec<&str> {
    let reasons = decision["reasons"].as_array().unwrap().iter();
    let watching = reasons.filter(|reason| reason["enforced"] == false);
    watching
        .map(|reason| reason["policyId"].as_str().unwrap())
        .collect()
}

fn strength(action: &str) -> usize {
    words().iter().position(|word| *word == action).unwrap()
}

/// A changed event beside the one that it was made of.
struct ChangedEvent {
    /// Which event it was.
    nth: usize,
    name: &'static str,
    event: Value,
}

/// What a trial found.
#[derive(Default)]
struct Figures {
    pairs: u64,
    stopped: u64,
    /// Reports of policies in monitor mode that had to stand.
    reported: u64,
    /// Events that backtests judged, and those of them that were unknown.
    judged: u64,
    unknown: u64,
    /// What devices were sure of, what of that did not pass, and what they would have asked about.
    certain: u64,
    refused: u64,
    asked: u64,
    /// Answers of devices that had to be those of the unchanged event.
    alike: u64,
}

impl Figures {
    /// Adds what devices said.
    fn add(&mut self, said: &[Vec<Said>]) {
        for said in said.iter().flatten() {
            self.asked += u64::from(!said.is_certain);
            self.certain += u64::from(said.is_certain);
            self.refused += u64::from(said.is_certain && said.action > 0);
        }
    }
}

/// Changed events that have to be answered at least as strongly as an action, or just so.
struct Group {
    least: usize,
    is_exact: bool,
    /// Whether a denied server's standing refused the events, which no backtest knows.
    is_by_standing: bool,
    asked: Vec<ChangedEvent>,
    /// The instants at which they were decided live and at which they are said to have happened, in this order.
    at: Vec<Timestamp>,
}

/// Has somebody else tell of the events, all at one instant, and first of what is said to have come before.
async fn import(app: &App, source: &str, earlier: &[Value], group: &Group) {
    let at = app.now().to_rfc3339();
    let line = |event: &Value| {
        let mut line = event.clone();
        line["at"] = at.as_str().into();
        line.to_string()
    };
    let all = earlier.iter().chain(group.asked.iter().map(|one| &one.event));
    let lines: Vec<String> = all.map(line).collect();
    let path = format!("/policies/history/import?source={source}");
    let call = app
        .request("POST", &path)
        .content(NDJSON, lines.join("\n").into_bytes());
    let reply = call.send().await;
    assert_eq!(reply.ok()["accepted"], lines.len(), "{}", reply.text());
}

/// Has the policies of now judge what happened at an instant, against none; returns the run.
async fn backtest(app: &App, at: Timestamp) -> String {
    let body = json!({
        "candidate": { "kind": "set", "policies": [] },
        "window": { "from": at.to_rfc3339(), "to": at.plus_secs(1).to_rfc3339() },
    });
    let made = app.write("POST", "/policies/backtests", body).await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

/// Judges what a backtest says of a group: nothing is weaker than live, and what is not unknown is as it was live. That
/// many other events came before, about which nothing is asked.
async fn judge(app: &App, run: &str, earlier: usize, group: &Group, report: &str) -> u64 {
    let run = ended(app, run).await;
    assert_eq!(run["status"], "succeeded", "{run}");
    let results = &run["results"];
    let count = |name: &str| results[name].as_u64().unwrap();
    let (earlier, all) = (earlier as u64, (earlier + group.asked.len()) as u64);
    assert_eq!(count("eventsEvaluated"), all, "{run}");
    assert_eq!(count("errors"), 0, "{run}");
    let told = || {
        let events: Vec<String> = group
            .asked
            .iter()
            .map(|one| format!("{}: {}", one.name, one.event))
            .collect();
        format!("{results}\n{report}\n{}", events.join("\n"))
    };
    // Nobody guards against nothing: what is unchanged was let through.
    let (mut weaker, mut other) = (count("unchanged"), count("unchanged"));
    for (change, events) in results["byChange"].as_object().unwrap() {
        let (from, _) = change.split_once("_to_").unwrap();
        let (is, events) = (strength(from), events.as_u64().unwrap());
        weaker += if is < group.least { events } else { 0 };
        other += if is == group.least { 0 } else { events };
    }
    if group.least == 0 {
        weaker -= count("unchanged");
        other -= count("unchanged");
    }
    assert!(weaker <= earlier, "weaker in a backtest: {}", told());
    assert!(
        !group.is_exact || other <= earlier,
        "another answer in a backtest: {}",
        told()
    );
    count("unknown")
}

/// Makes changes of the events and sorts them by how strong the answer must be.
fn asked(dice: &mut Dice, world: &World, events: &[Value], before: &[Value], is_turned: bool) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, bool, bool), Group> = BTreeMap::new();
    let mut add = |nth: usize, name, meaning, event| {
        let least = strength(before[nth]["action"].as_str().unwrap());
        let is_exact = meaning == MeaningChange::Same && !is_turned;
        let is_by_standing = before[nth]["mcpServer"].is_object();
        let group = groups
            .entry((least, is_exact, is_by_standing))
            .or_insert_with(|| Group {
                least,
                is_exact,
                is_by_standing,
                asked: Vec::new(),
                at: Vec::new(),
            });
        group.asked.push(ChangedEvent { nth, name, event });
    };
    for (nth, event) in events.iter().enumerate() {
        add(nth, "nothing", MeaningChange::Same, event.clone());
        for _ in 0..12 {
            if let Some((name, meaning, event)) = change(dice, world, event) {
                add(nth, name, meaning, event);
            }
        }
    }
    groups.into_values().collect()
}

#[expect(clippy::too_many_lines, reason = "one trial, step by step")]
async fn trial(app: &App, world: &World, dice: &mut Dice, number: u64) -> Figures {
    let mut guards: Vec<(Family, Value)> = (0..=dice.below(3))
        .map(|nth| guard(dice, &format!("g{number}-{nth}")))
        .collect();
    let mut events: Vec<Value> = (0..6).map(|_| event(dice, world)).collect();
    // Once for certain, whatever the dice say.
    if number == 0 {
        let condition = json!({ "field": "identity.user_id", "op": "eq", "value": LOGIN });
        guards.push(resource("reports", "monitor", &condition));
        let attributes = json!({ "identity.user_id": world.zoe, "request.http.method": "DELETE" });
        events.push(json!({ "occasion": "resource", "attributes": attributes }));
    }
    for (family, definition) in &guards {
        policy(app, *family, definition.clone()).await;
    }
    // Everybody has a past, so that the first event is judged as the last one.
    let earlier = [
        ("identity.user_id", LOGIN),
        ("identity.service_account_id", ROBOT),
    ];
    let earlier = earlier.map(
        |(name, word)| json!({ "occasion": "pre_tool", "attributes": { name: word, "tool.id": "Bash", "event.kind": format!("g{number}") } }),
    );
    // What this server has answered counts, whether it is written or not.
    let durability = *dice.pick(&["durable", "buffered"]);
    let body = json!({ "events": earlier, "record": durability });
    ask(app, body).await.ok();
    let before = decide(app, &events).await;
    let counts = guards
        .iter()
        .any(|(_, one)| one["conditions"]["eventCount"].is_object());
    for (event, before) in events.iter().zip(&before) {
        let is_weak = before["action"] == "allow" && before["reasons"] == json!([]);
        assert!(
            !(counts && is_weak && event["occasion"] == "pre_tool"),
            "a {durability} event did not count: {event} {before}"
        );
    }
    let mut figures = Figures::default();
    let judges = world.devices.judges(app, &world.zoe).await;
    figures.add(&devices::said(app.now(), &judges, &events, &before));
    let (turned, back) = turn(app, world, dice.below(9)).await;
    let judges = world.devices.judges(app, &world.zoe).await;
    let mut groups = asked(dice, world, &events, &before, !back.is_empty());
    let asks_the_past = guards
        .iter()
        .any(|(_, one)| one.to_string().contains("eventCount"));
    let past = if asks_the_past {
        earlier.to_vec()
    } else {
        Vec::new()
    };
    let policies = json!(guards.iter().map(|(_, one)| one).collect::<Vec<_>>());
    for group in &mut groups {
        // Each group has a second of its own, so that a backtest is about nothing else.
        app.advance(1);
        group.at.push(app.now());
        let sent: Vec<Value> = group.asked.iter().map(|one| one.event.clone()).collect();
        let after = decide(app, &sent).await;
        let said = devices::said(app.now(), &judges, &sent, &after);
        figures.add(&said);
        if group.is_exact {
            figures.alike += devices::are_alike(&group.asked, &said);
        }
        for (one, after) in group.asked.iter().zip(&after) {
            let is = strength(after["action"].as_str().unwrap());
            figures.stopped += u64::from(group.least > 0);
            figures.reported += reported(&before[one.nth]).len() as u64;
            let report = || {
                format!(
                    "{}, {turned}: {} became {}\npolicies {policies}\nevent {}\nchanged {}\nanswer {after}",
                    one.name, before[one.nth]["action"], after["action"], events[one.nth], one.event,
                )
            };
            assert!(is >= group.least, "weaker: {}", report());
            let (was_reported, is_reported) = (reported(&before[one.nth]), reported(after));
            assert!(
                was_reported.iter().all(|policy| is_reported.contains(policy)),
                "no longer reported: {}",
                report()
            );
            if group.is_exact {
                assert_eq!(is, group.least, "another answer: {}", report());
                assert_eq!(is_reported, was_reported, "another report: {}", report());
            }
        }
        // One at a time is as all at once.
        let one = dice.below(sent.len());
        app.advance(1);
        let alone = decide(app, &sent[one..=one]).await;
        assert_eq!(alone[0]["action"], after[one]["action"], "{}", sent[one]);
        app.advance(1);
        group.at.push(app.now());
        import(app, &format!("net-{number}"), &past, group).await;
        figures.pairs += sent.len() as u64;
    }
    app.advance(1);
    let mut runs = Vec::new();
    let of_policies = |group: &&Group| group.least > 0 && !group.is_by_standing;
    for group in groups.iter().filter(of_policies) {
        let [live, imported] = group.at[..] else {
            unreachable!("two instants")
        };
        runs.push((backtest(app, imported).await, past.len(), group));
        // What lies before its window a backtest does not count: what was decided live came without a past.
        if past.is_empty() {
            runs.push((backtest(app, live).await, 0, group));
        }
    }
    let report = format!("{turned}\npolicies {policies}");
    for (run, earlier, group) in &runs {
        figures.judged += group.asked.len() as u64;
        figures.unknown += judge(app, run, *earlier, group, &report).await;
    }
    take_back(app, &back).await;
    for (family, definition) in &guards {
        let collection = match family {
            Family::SkillAcl => "skill-acls",
            Family::Resource => "resource-policies",
            _ => "content-policies",
        };
        let id = definition["id"].as_str().unwrap();
        let gone = app
            .delete(&format!("/{collection}/{id}?expectedRevision=1"))
            .await;
        assert!(gone.status.is_success(), "{}", gone.text());
    }
    figures
}

/// Proves LJ-1, LJ-12, MV-1, MV-2.
#[test]
fn no_other_words_or_bytes_make_a_verdict_weaker() {
    let (wanted, seed) = (run::count(SMALL), seed("verdicts"));
    run::each("verdicts", &run::roomy(), |app: Arc<App>| async move {
        let world = World::of(&app).await;
        let worker = Worker::start(&app);
        let progress = Progress::of("verdicts", wanted);
        let (mut all, mut number) = (Figures::default(), 0);
        while all.pairs < wanted {
            let mut dice = Dice::of(seed.wrapping_add(number));
            let more = trial(&app, &world, &mut dice, number).await;
            all.pairs += more.pairs;
            all.stopped += more.stopped;
            all.reported += more.reported;
            all.judged += more.judged;
            all.unknown += more.unknown;
            all.certain += more.certain;
            all.refused += more.refused;
            all.asked += more.asked;
            all.alike += more.alike;
            number += 1;
            progress.add(more.pairs);
        }
        worker.stop().await;
        let (stopped, judged, unknown) = (all.stopped, all.judged, all.unknown);
        assert!(
            stopped > wanted / 5,
            "hardly any event was stopped: {stopped} of {}",
            all.pairs
        );
        assert!(all.reported > 0, "no policy in monitor mode reported anything");
        assert!(
            judged > stopped && unknown < judged / 2,
            "backtests knew little: {unknown} of {judged} were unknown"
        );
        let (certain, refused) = (all.certain, all.refused);
        assert!(
            certain > wanted / 5 && refused > wanted / 20 && all.asked > 0 && all.alike > wanted / 10,
            "devices were sure of {certain}, {refused} of which did not pass, asked about {} and answered {} alike",
            all.asked,
            all.alike
        );
        json!({ "pairs": all.pairs, "stopped": stopped, "reported": all.reported, "sets": number, "backtested": judged, "unknown": unknown,
            "devices": { "certain": certain, "notAllowed": refused, "asked": all.asked, "alike": all.alike } })
    });
}

//! Random policies and random events: what the device says by its signed bundle beside what the server says by its store.
//!
//! Both are asked as in earnest: the agent at its socket, with the event as a client writes it, and the server over HTTP with what the hook
//! makes of that event. That the events here are what the hook makes of them is compared with a hook first.
//!
//! What the device says for certain has to be the server's answer, member by member. Where it says that the server has to be asked, what it
//! holds to until then must not be weaker.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use super::laptop::{Laptop, USER};
use crate::Engine;
use crate::bench::report::{Goal, Row};
use crate::clients::administrator::{Administrator, text};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};
use crate::random::Random;

/// Policies that are in force at once, at most.
const POLICIES: u64 = 30;
/// Pairs of one set of policies.
const OF_A_SET: u64 = 2_000;
/// LIMIT: events of one request; ours leaves room for a call that is two.
const OF_A_REQUEST: usize = 998;
/// From the weakest to the strongest.
const STRENGTH: [&str; 7] = [
    "allow",
    "flag_for_review",
    "nudge",
    "redact",
    "filter",
    "require_approval",
    "block",
];
const TOOLS: [&str; 6] = [
    "Bash",
    "Read",
    "apply_patch",
    "mcp__git__push",
    "mcp__crm__list",
    "BASH",
];
const SERVERS: [&str; 3] = ["git", "crm", "none"];
const COMMANDS: [&str; 6] = ["rm -rf /srv", "ls", "git push --force", "curl http://x", "", "é"];
const PATHS: [&str; 4] = ["/etc/passwd", "/srv/app/a.rs", "a.rs", "/ETC/passwd"];
const WORDS: [&str; 5] = [
    "a card 4111111111111111",
    "hello",
    "secret: é",
    "drop table users",
    "",
];
/// Attributes of the use of a product whose values a hook cannot know.
const UNKNOWN_OF_THE_USE: [&str; 8] = [
    "account.access_state",
    "account.posture",
    "account.profile_id",
    "process.entrypoint_id",
    "process.id",
    "process.name",
    "process.path",
    "provider.id",
];

/// Who there is beside ada.
struct World {
    ada: String,
    bob: String,
    /// Ada's, and bob's.
    groups: [String; 2],
    device: String,
}

/// What came of it.
#[derive(Default)]
pub struct Compared {
    sets: u64,
    policies: u64,
    pairs: u64,
    certain: u64,
    /// Certain, and not allowed.
    found: u64,
    asked: u64,
    different: u64,
}

/// An event as a client writes it, and what a hook asks about.
struct Call {
    payload: Vec<u8>,
    events: Vec<Value>,
}

/// Compares so many pairs, and shows the first that differ.
pub fn compare(
    laptop: &mut Laptop,
    server: &Server,
    bootstrap: &Bootstrap,
    seed: u64,
    pairs: u64,
) -> Outcome<Compared> {
    eprintln!("pairs of device and server: seed {seed}");
    let mut administrator = Administrator::new(server, bootstrap);
    let world = World::make(&mut administrator, laptop)?;
    let mut compared = Compared::default();
    let mut shown = Vec::new();
    must_be_a_hooks(laptop, server, &mut Random::new(seed), &world)?;
    while compared.pairs < pairs {
        let mut random = Random::part(seed, compared.sets);
        let wanted = OF_A_SET.min(pairs - compared.pairs);
        let made = guard(&mut administrator, &mut random, &world, compared.sets)?;
        compared.policies += made.len() as u64;
        laptop.judges()?;
        let mut number = 0;
        let mut of_set = 0;
        while of_set < wanted {
            let mut calls = Vec::new();
            let mut events = Vec::new();
            while events.len() < OF_A_REQUEST && of_set + (events.len() as u64) < wanted {
                number += 1;
                let call = call(&mut random, &world, &format!("{}-{number}", compared.sets));
                events.extend(call.events.iter().cloned());
                calls.push(call);
            }
            of_set += events.len() as u64;
            let asked = json!({ "events": events, "mode": "enforce", "record": "buffered" });
            let said = administrator.ask("policies/decisions", asked)?;
            let said = said["decisions"]
                .as_array()
                .context("an answer without decisions")?;
            let mut rest = said.iter();
            for call in &calls {
                let theirs: Vec<&Value> = rest.by_ref().take(call.events.len()).collect();
                if let Some(why) = compared.one(laptop, call, &theirs)? {
                    shown.push(format!("set {}: {why}", compared.sets));
                }
            }
        }
        compared.sets += 1;
        forget(server, bootstrap, &made, compared.sets)?;
        if compared.sets.is_multiple_of(10) || !shown.is_empty() {
            eprintln!("{} sets: {}", compared.sets, compared.says());
        }
        if shown.len() > 5 {
            break;
        }
    }
    if shown.is_empty() {
        return compared.meets_everything();
    }
    Err(Failure::new(format!(
        "with --seed {seed}: {}:\n{}",
        compared.says(),
        shown.join("\n")
    )))
}

impl World {
    fn make(administrator: &mut Administrator, laptop: &Laptop) -> Outcome<Self> {
        let login = "bob@acme.example";
        let bob = json!({ "loginName": login, "displayName": "bob", "email": login });
        let bob = text(&administrator.post("directory/users", bob)?, "/user/id")?;
        let mut groups = Vec::new();
        for (name, member) in [("engineering", &laptop.owner), ("law", &bob)] {
            let made = administrator.post("directory/groups", json!({ "name": name }))?;
            let group = text(&made, "/group/id")?;
            administrator.change(
                "PUT",
                &format!("directory/groups/{group}/members/{member}"),
                json!({}),
            )?;
            groups.push(group);
        }
        Ok(Self {
            ada: laptop.owner.clone(),
            bob,
            groups: groups
                .try_into()
                .map_err(|_| Failure::new("two groups were made"))?,
            device: laptop.id.clone(),
        })
    }
}

fn picked<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    random.pick(list).copied().unwrap_or_default()
}

/// Makes random policies, and returns where they are.
fn guard(
    administrator: &mut Administrator,
    random: &mut Random,
    world: &World,
    set: u64,
) -> Outcome<Vec<String>> {
    let mut made = Vec::new();
    for number in 0..random.between(1, POLICIES) {
        let id = format!("s{set}-{number}");
        let (family, definition) = policy(random, world, &id);
        match administrator.post(family, json!({ "definition": definition })) {
            Ok(_) => made.push(format!("{family}/{id}")),
            // Some of what chance writes is none: a scope that nobody can be in, an attribute that no occasion of it has.
            Err(why) if why.to_string().contains("invalid_definition") => {}
            Err(why) => return Err(why).context(&definition),
        }
    }
    Ok(made)
}

fn policy(random: &mut Random, world: &World, id: &str) -> (&'static str, Value) {
    let is_access = random.chance(25);
    let actions = if is_access {
        &["allow", "block", "block", "flag_for_review", "require_approval"][..]
    } else {
        &[
            "allow",
            "block",
            "block",
            "flag_for_review",
            "nudge",
            "redact",
            "require_approval",
        ][..]
    };
    // What needs a yes is asked about, whatever else there is: seldom.
    let mut action = picked(random, actions);
    if action == "require_approval" && random.chance(80) {
        action = "flag_for_review";
    }
    let mut definition = json!({
        "id": id, "name": id, "action": action, "acknowledgeBroadScope": true, "conditions": condition(random, world, is_access, 2),
    });
    if random.chance(30) {
        definition["appliesTo"] = scope(random, world, is_access);
    }
    if random.chance(10) {
        definition["except"] = atom(random, world, is_access);
    }
    if is_access {
        definition["severity"] = "high".into();
        definition["enforcementSurfaces"] = json!(["inline_hook"]);
        return ("access-policies", definition);
    }
    let occasions: Vec<&str> = ["prompt", "pre_tool", "post_tool"]
        .into_iter()
        .filter(|_| random.chance(70))
        .collect();
    definition["evaluateOn"] = if occasions.is_empty() {
        json!(["pre_tool"])
    } else {
        json!(occasions)
    };
    if action == "nudge" || random.chance(30) {
        definition["message"] = "ask the platform team first".into();
    }
    if action == "redact" {
        definition["redaction"] =
            json!({ "strategy": "partial", "keepEnd": 4, "applyTo": "matches", "pattern": "[0-9]{13,16}" });
    }
    ("content-policies", definition)
}

fn scope(random: &mut Random, world: &World, is_access: bool) -> Value {
    let people = [&world.ada, &world.bob];
    match random.between(0, if is_access { 2 } else { 3 }) {
        0 => json!({ "users": [random.pick(&people)] }),
        1 => json!({ "groups": [random.pick(&world.groups)] }),
        2 if is_access => json!({ "devices": [world.device] }),
        2 => json!({ "users": people }),
        _ => json!({ "products": [picked(random, &["anthropic/claude-code", "openai/codex"])] }),
    }
}

fn condition(random: &mut Random, world: &World, is_access: bool, depth: u32) -> Value {
    if depth == 0 || random.chance(40) {
        return atom(random, world, is_access);
    }
    let mut members = || -> Vec<Value> {
        (0..random.between(1, 3))
            .map(|_| condition(random, world, is_access, depth - 1))
            .collect()
    };
    let members = members();
    match random.between(0, 2) {
        0 => json!({ "all": members }),
        1 => json!({ "any": members }),
        _ => json!({ "not": members[0] }),
    }
}

fn atom(random: &mut Random, world: &World, is_access: bool) -> Value {
    let is = |field: &str, op: &str, value: Value| json!({ "field": field, "op": op, "value": value });
    let people = [
        USER,
        "bob@acme.example",
        world.ada.as_str(),
        world.bob.as_str(),
        "Ada@acme.example",
    ];
    let equals = if random.chance(70) { "eq" } else { "neq" };
    match random.between(0, 2) {
        0 if random.chance(50) => return is("identity.user_id", equals, picked(random, &people).into()),
        0 => {
            let groups = [
                world.groups[0].as_str(),
                world.groups[1].as_str(),
                "engineering",
                "Law",
            ];
            return is("identity.group_ids", "contains", picked(random, &groups).into());
        }
        _ => {}
    }
    if is_access {
        return match random.between(0, 4) {
            0 => is(
                "product.id",
                equals,
                picked(random, &["anthropic/claude-code", "openai/codex"]).into(),
            ),
            1 => is(
                "device.platform",
                equals,
                picked(random, &["linux", "macos"]).into(),
            ),
            2 => is("device.id", equals, world.device.as_str().into()),
            3 => json!({ "field": "process.name", "op": "exists" }),
            _ => is("account.posture", equals, "managed".into()),
        };
    }
    match random.between(0, 9) {
        0 => is("tool.id", equals, picked(random, &TOOLS).into()),
        1 => {
            json!({ "field": "tool.id", "op": "in", "value": [picked(random, &TOOLS), picked(random, &TOOLS)] })
        }
        2 => is(
            "tool.input.command",
            "contains",
            picked(random, &["rm", "--force", "é", "http"]).into(),
        ),
        3 => is(
            "tool.input.command",
            "matches",
            picked(random, &["^rm -rf /(srv|etc)", "(?i)PUSH", "^$"]).into(),
        ),
        4 => is(
            "tool.input.file_path",
            "starts_with",
            picked(random, &["/etc/", "/srv", "a"]).into(),
        ),
        5 => is(
            "tool.input",
            "contains",
            picked(random, &["count", "rm -rf", "3"]).into(),
        ),
        6 => is("mcp.server_id", equals, picked(random, &SERVERS).into()),
        7 => is(
            "request.prompt",
            "contains",
            picked(random, &["card", "secret", "hello"]).into(),
        ),
        8 => is(
            "tool.result",
            "matches",
            picked(random, &["[0-9]{13,16}", "drop", "^hello$"]).into(),
        ),
        _ if random.chance(15) => is("llm.model", equals, "large".into()),
        _ => {
            json!({ "field": picked(random, &["tool.input.file_path", "mcp.server_id", "tool.input.command"]), "op": "exists" })
        }
    }
}

/// A random event of Claude Code.
fn call(random: &mut Random, world: &World, id: &str) -> Call {
    let (session, call_id) = (
        format!("session-{}", id.split('-').next().unwrap_or_default()),
        format!("call-{id}"),
    );
    let moment = picked(
        random,
        &[
            "UserPromptSubmit",
            "PreToolUse",
            "PreToolUse",
            "PreToolUse",
            "PostToolUse",
        ],
    );
    let mut payload = json!({ "hook_event_name": moment, "session_id": session, "cwd": "/srv/app", "permission_mode": "default" });
    let mut attributes = Map::new();
    let mut missing = vec!["llm.model", "llm.provider"];
    let occasion = if moment == "UserPromptSubmit" {
        let prompt = picked(random, &WORDS);
        payload["prompt"] = prompt.into();
        attributes.insert("request.prompt".into(), prompt.into());
        "prompt"
    } else {
        payload["tool_use_id"] = call_id.as_str().into();
        let tool = picked(random, &TOOLS);
        let input = input(random);
        payload["tool_name"] = tool.into();
        attributes.insert("tool.id".into(), tool.into());
        if let Some((server, name)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            attributes.insert("mcp.server_id".into(), server.into());
            attributes.insert("mcp.tool_id".into(), name.into());
            missing.extend(["mcp.package_id", "mcp.package_version", "mcp.remote_url"]);
        }
        // As it is written in the event.
        attributes.insert("tool.input".into(), input.to_string().into());
        payload["tool_input"] = input;
        if moment == "PostToolUse" {
            let result = picked(random, &WORDS);
            payload["tool_response"] = result.into();
            attributes.insert("tool.result".into(), result.into());
            "post_tool"
        } else {
            "pre_tool"
        }
    };
    let event = |occasion: &str, mut attributes: Map<String, Value>, mut missing: Vec<&str>| {
        attributes.insert("identity.user_id".into(), USER.into());
        missing.sort_unstable();
        let mut event =
            json!({ "occasion": occasion, "attributes": attributes, "missing": missing, "session": session });
        if occasion != "prompt" && moment != "UserPromptSubmit" {
            event["callId"] = call_id.as_str().into();
        }
        event
    };
    let mut events = vec![event(occasion, attributes, missing)];
    if occasion != "post_tool" {
        let mut of_the_use = Map::new();
        of_the_use.insert("product.id".into(), "anthropic/claude-code".into());
        of_the_use.insert("device.platform".into(), std::env::consts::OS.into());
        // The device knows itself.
        of_the_use.insert("device.id".into(), world.device.as_str().into());
        events.push(event("inline_hook", of_the_use, UNKNOWN_OF_THE_USE.to_vec()));
    }
    Call {
        payload: payload.to_string().into_bytes(),
        events,
    }
}

fn input(random: &mut Random) -> Value {
    let mut input = json!({});
    if random.chance(70) {
        input["command"] = picked(random, &COMMANDS).into();
    }
    if random.chance(40) {
        input["file_path"] = picked(random, &PATHS).into();
    }
    if random.chance(30) {
        input["count"] = random.between(0, 6).into();
    }
    input
}

/// Has a hook without an agent ask about some events, and compares what it asks with what is compared here.
fn must_be_a_hooks(laptop: &mut Laptop, server: &Server, random: &mut Random, world: &World) -> Outcome {
    laptop.rest()?;
    let file = laptop.registration();
    let registered = std::fs::read_to_string(&file).context(file.display())?;
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    let address = listener.local_addr().context("cannot listen")?.to_string();
    std::fs::write(&file, registered.replace(&server.address.to_string(), &address))
        .context(file.display())?;
    let mut outcome = Ok(());
    for number in 0..20 {
        let call = call(random, world, &format!("hook-{number}"));
        let mut hook = laptop.command(&["hook", "run", "claude-code", "--mode", "monitor"]);
        hook.stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut hook = hook.spawn().context("cannot start a hook")?;
        drop(hook.stdin.take().context("no input")?.write_all(&call.payload));
        let mut asked = taken(&listener)?;
        hook.wait().context("cannot wait for a hook")?;
        for event in asked["events"].as_array_mut().into_iter().flatten() {
            let event = event.as_object_mut().context("an event is an object")?;
            // Approvals alone look at these.
            event.remove("folder");
            event.remove("host");
            if event["occasion"] == "inline_hook" {
                event["attributes"]["device.id"] = world.device.as_str().into();
                if let Some(missing) = event["missing"].as_array_mut() {
                    missing.retain(|name| name != "device.id");
                }
            }
        }
        if asked["events"] != json!(call.events) {
            outcome = Err(Failure::new(format!(
                "a hook asks {}, and here it was thought to ask {}",
                asked["events"],
                json!(call.events)
            )));
            break;
        }
    }
    std::fs::write(&file, registered).context(file.display())?;
    outcome
}

/// Takes one request, and answers that there is no server.
fn taken(listener: &TcpListener) -> Outcome<Value> {
    let (mut stream, _) = listener.accept().context("no hook came")?;
    let mut reader = BufReader::new(stream.try_clone().context("cannot share a connection")?);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line).context("a request without a head")?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().context("no length")?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).context("half a request")?;
    stream
        .write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .context("a hook does not listen")?;
    serde_json::from_slice(&body).context("a request that is no JSON")
}

/// Takes the policies of a set away.
fn forget(server: &Server, bootstrap: &Bootstrap, made: &[String], set: u64) -> Outcome {
    let mut connection = Connection::new(server.address);
    for path in made {
        let key = format!("parity-{set}-{}", path.replace('/', "-"));
        let path = format!("{path}?expectedRevision=1");
        let request: Request = bootstrap.act("DELETE", &path, &key, "a set is over");
        let answer = connection.send(&request).map_err(|lost| Failure::new(lost.why))?;
        if !answer.is_success() {
            return Err(Failure::new(format!("{path}: {}", answer.summary())));
        }
    }
    Ok(())
}

impl Compared {
    /// Compares what is said of one call; says what is different.
    fn one(&mut self, laptop: &Laptop, call: &Call, theirs: &[&Value]) -> Outcome<Option<String>> {
        self.pairs += call.events.len() as u64;
        let told = laptop.tells("judge", &call.payload)?;
        let shown = |ours: &Value, theirs: &Value| {
            let payload = String::from_utf8_lossy(&call.payload);
            Some(format!("{payload}\n  device {ours}\n  server {theirs}"))
        };
        let held;
        let (ours, is_certain) = if told["decided"].is_null() {
            self.asked += call.events.len() as u64;
            held = laptop.tells("hold", &call.payload)?;
            (&held["decided"]["decisions"], false)
        } else {
            (&told["decided"]["decisions"], true)
        };
        let Some(ours) = ours.as_array().filter(|ours| ours.len() == theirs.len()) else {
            self.different += 1;
            return Ok(shown(&told, &json!(theirs)));
        };
        for (ours, theirs) in ours.iter().zip(theirs) {
            let is_right = if is_certain {
                self.certain += 1;
                self.found += u64::from(ours["action"] != "allow");
                is_same(ours, theirs)
            } else {
                strength(ours)? >= strength(theirs)?
            };
            if !is_right {
                self.different += 1;
                return Ok(shown(ours, theirs));
            }
        }
        Ok(None)
    }

    fn says(&self) -> String {
        format!(
            "{} pairs, {} certain on the device ({} of them not allowed), {} asked about, {} differ",
            self.pairs, self.certain, self.found, self.asked, self.different
        )
    }

    /// Errors: what was compared is not worth much.
    fn meets_everything(self) -> Outcome<Self> {
        println!("{}", self.says());
        let many = self.policies > 10 * self.sets;
        // A few sets may be anything.
        if self.sets < 5
            || (many && self.found > self.pairs / 20 && self.certain > self.pairs / 4 && self.asked > 0)
        {
            return Ok(self);
        }
        Err(Failure::new(
            "the pairs say little: too few policies, too few that are certain, or too few that are stopped",
        ))
    }

    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    pub fn rows(&self, engine: Engine) -> Vec<Row> {
        let row = |name: &str, goal, value: u64| Row::new(name, engine.name(), "", goal, vec![value as f64]);
        vec![
            row("pairs that device and server judged", Goal::None, self.pairs),
            row("sets of policies that they were judged by", Goal::None, self.sets),
            row("of the pairs, certain on the device", Goal::None, self.certain),
            row("of the certain, not allowed", Goal::None, self.found),
            row(
                "of the pairs, asked about and held no weaker",
                Goal::None,
                self.asked,
            ),
            row(
                "of the pairs, different (the goal is none)",
                Goal::None,
                self.different,
            ),
        ]
    }
}

/// Says whether every member that the device has is the server's. Which words nobody can resolve, the device cannot know.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    let members = ours.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| *name != "unresolved")
        .all(|(name, value)| theirs.get(name) == Some(value))
}

fn strength(decision: &Value) -> Outcome<usize> {
    let action = decision["action"].as_str().unwrap_or_default();
    let place = STRENGTH.iter().position(|one| *one == action);
    place.context(format_args!("{decision} has no action"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_member_makes_another_verdict() {
        let ours = json!({ "action": "block", "policyIds": ["a"], "unresolved": [] });
        let theirs = json!({ "action": "block", "policyIds": ["a"], "unresolved": ["/attributes/x"], "eventId": "evt_1" });
        assert!(is_same(&ours, &theirs));
        assert!(!is_same(&ours, &json!({ "action": "block", "policyIds": ["b"] })));
        assert!(!is_same(&ours, &json!({ "action": "block" })));
        assert!(strength(&ours).unwrap() > strength(&json!({ "action": "allow" })).unwrap());
        assert!(strength(&json!({})).is_err());
    }
}

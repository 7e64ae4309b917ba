//! Random policies and histories over a small world, so that things meet.

use super::naive::{NamedRecord, Plain, REGISTERS, World as Names, fold};
use provost_policy::{Field, Record, Register};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

pub enum Dice {
    Seeded(Box<ChaCha8Rng>),
    /// The next bytes of an input that a fuzzer made; zeros after its end.
    Told(std::vec::IntoIter<u8>),
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self::Seeded(Box::new(ChaCha8Rng::seed_from_u64(seed)))
    }

    pub fn told(bytes: &[u8]) -> Self {
        Self::Told(Vec::from(bytes).into_iter())
    }

    pub fn below(&mut self, end: usize) -> usize {
        let drawn = match self {
            Self::Seeded(random) => random.next_u64(),
            Self::Told(bytes) => bytes.next().unwrap_or(0).into(),
        };
        usize::try_from(drawn % end as u64).unwrap()
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    pub fn some<'a>(&mut self, list: &[&'a str], most: usize) -> Vec<&'a str> {
        let mut all: Vec<&str> = (0..self.below(most + 1)).map(|_| self.pick(list)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Text,
    Set,
    Number,
    Boolean,
    Content,
    Object,
}
use Kind::{Boolean, Content, Number, Object, Set, Text};

/// The attributes in use, and texts that they have.
type World = &'static [(&'static str, Kind, &'static [&'static str])];

const USERS: [&str; 4] = ["ann", "bob", "cid", "dee"];
const GROUPS: [&str; 4] = ["eng", "ops", "law", "all"];
const TOOLS: [&str; 5] = ["shell", "mail", "fetch", "book", "cancel"];
const COMMANDS: [&str; 5] = ["rm -rf /", "rm", "ls", "sh -c", "7"];
const WORDS: [&str; 6] = ["drop table", "hello", "a", "", "rm -rf /", "secret: é"];

const CONTENT: World = &[
    ("identity.user_id", Text, &USERS),
    ("identity.group_ids", Set, &GROUPS),
    ("identity.service_account_id", Text, &["sa1", "sa2"]),
    ("tool.id", Text, &TOOLS),
    ("request.prompt", Text, &WORDS),
    ("event.labels", Set, &["pii", "code", "money"]),
    ("mcp.server_id", Text, &["git", "crm"]),
    ("mcp.tool_id", Text, &["read", "write", "list"]),
    ("llm.input_tokens", Number, &[]),
    ("classification.has_unresolved_sensitive_content", Boolean, &[]),
    ("tool.input", Content, &WORDS),
    ("tool.input.command", Text, &COMMANDS),
    ("tool.input.url", Text, &COMMANDS),
];
const ACCESS: World = &[
    ("identity.user_id", Text, &USERS),
    ("identity.group_ids", Set, &GROUPS),
    ("device.id", Text, &["d1", "d2"]),
    ("destination.domain", Text, &["api.x.ai", "x.ai", "example.com"]),
    ("destination.port", Number, &[]),
    (
        "classification.state",
        Text,
        &["known_ai", "candidate_ai", "uncertain"],
    ),
    ("source.capability", Set, &["see", "stop"]),
];
const RESOURCE: World = &[
    ("identity.user_id", Text, &USERS),
    ("identity.group_ids", Set, &GROUPS),
    ("device.id", Text, &["d1", "d2"]),
    ("resource.id", Text, &["ledger", "wiki", "cache"]),
    ("resource.protocol", Text, &["postgres", "redis"]),
    ("request.postgres.command", Text, &["SELECT", "DROP", "UPDATE"]),
    ("request.postgres.tables", Set, &["users", "cards"]),
    ("request.redis.database", Number, &[]),
];
/// Fields that content policies declare: name, type.
pub const CUSTOM: [(&str, &str, Kind); 6] = [
    ("tool.input.amount", "number", Number),
    ("tool.input.city", "string", Text),
    ("tool.input.tags", "string_set", Set),
    ("tool.input.legs[0].to", "string", Text),
    ("tool.input.urgent", "boolean", Boolean),
    ("tool.input.more", "object", Object),
];
const FAMILIES: [&str; 4] = ["content", "access", "resource", "skill_acl"];
pub const START_MS: i64 = 1_780_000_000_000;

fn world(family: &str) -> World {
    match family {
        "content" => CONTENT,
        "access" => ACCESS,
        _ => RESOURCE,
    }
}

fn text(dice: &mut Dice, texts: &[&str]) -> Value {
    let texts = if texts.is_empty() {
        &["paris", "rome", "oslo"]
    } else {
        texts
    };
    dice.pick(texts).into()
}

fn set(dice: &mut Dice, texts: &[&str], least: usize) -> Value {
    let texts = if texts.is_empty() { &["red", "blue"] } else { texts };
    let mut all = dice.some(texts, 3);
    if all.len() < least {
        all.push(texts[0]);
    }
    json!(all)
}

fn number(dice: &mut Dice) -> Value {
    dice.pick(&[
        &json!(0),
        &json!(1),
        &json!(2.5),
        &json!(100),
        &json!(-3),
        &json!(7),
    ])
    .clone()
}

fn predicate(dice: &mut Dice, name: &str, kind: Kind, texts: &[&str]) -> Value {
    let is_closed = matches!(name, "classification.state" | "resource.protocol");
    let (op, value) = match kind {
        Object => ("exists", Value::Null),
        Boolean => match dice.below(3) {
            0 => ("exists", Value::Null),
            1 => ("eq", json!(dice.one_in(2))),
            _ => ("neq", json!(dice.one_in(2))),
        },
        Number => match dice.pick(&["eq", "neq", "in", "not_in", "gt", "gte", "lt", "lte", "exists"]) {
            "exists" => ("exists", Value::Null),
            op @ ("in" | "not_in") => (op, json!([number(dice), number(dice)])),
            op => (op, number(dice)),
        },
        Set => match dice.pick(&["eq", "neq", "contains", "contains_any", "contains_all", "exists"]) {
            "exists" => ("exists", Value::Null),
            "contains" => (
                "contains",
                text(dice, if texts.is_empty() { &["red", "blue"] } else { texts }),
            ),
            op @ ("contains_any" | "contains_all") => (op, set(dice, texts, 1)),
            op => (op, set(dice, texts, 0)),
        },
        Text | Content => {
            let all = [
                "eq",
                "neq",
                "contains",
                "starts_with",
                "ends_with",
                "matches",
                "exists",
                "in",
                "not_in",
            ];
            let ops = if kind == Text { &all[..] } else { &all[..7] };
            match dice.pick(ops) {
                "exists" => ("exists", Value::Null),
                op @ ("in" | "not_in") => (op, json!([text(dice, texts), text(dice, texts)])),
                "matches" => (
                    "matches",
                    dice.pick(&["^[a-m]", "a", "(?i)DROP\\s", "^$", "e+.?$"]).into(),
                ),
                op @ ("eq" | "neq") => (op, text(dice, texts)),
                op if is_closed => (op, json!("known")),
                op => (op, dice.pick(&["a", "sh", "x.ai", "\"", "e", ""]).into()),
            }
        }
    };
    let mut node = json!({"field": name, "op": op});
    if !value.is_null() {
        node["value"] = value;
    }
    node
}

fn leaf(dice: &mut Dice, family: &str, has_custom: bool) -> Value {
    if has_custom && dice.one_in(3) {
        let (name, _, kind) = dice.pick(&CUSTOM);
        return predicate(dice, name, kind, &[]);
    }
    let (name, kind, texts) = dice.pick(world(family));
    predicate(dice, name, kind, texts)
}

pub fn condition(dice: &mut Dice, family: &str, has_custom: bool, depth: usize) -> Value {
    if depth == 0 {
        return leaf(dice, family, has_custom);
    }
    let has_past = family != "access";
    let inner = |dice: &mut Dice| condition(dice, family, has_custom, depth - 1);
    let within = dice.pick(&["1s", "30s", "2m", "1h", "1d", "30d"]);
    let op = dice.pick(&["eq", "gt", "gte", "lt", "lte"]);
    let value = dice.pick(&[0, 1, 1, 2, 3, 7, 1024]);
    match dice.below(if has_past { 13 } else { 8 }) {
        0 | 1 => json!({"all": (0..=dice.below(3)).map(|_| inner(dice)).collect::<Vec<_>>()}),
        2 | 3 => json!({"any": (0..=dice.below(3)).map(|_| inner(dice)).collect::<Vec<_>>()}),
        4 => json!({"not": inner(dice)}),
        5..=7 => leaf(dice, family, has_custom),
        8 => json!({"hasPriorEvent": inner(dice)}),
        9 => {
            let events: Vec<Value> = (0..2 + dice.below(3)).map(|_| inner(dice)).collect();
            json!({"hasEventSequence": {"within": within, "ordered": dice.one_in(2), "events": events}})
        }
        10 => json!({"eventCount": {"within": within, "where": inner(dice), "op": op, "value": value}}),
        _ => {
            let world = world(family);
            let mut field = dice.pick(world).0;
            if field == "tool.input" {
                field = if has_custom {
                    dice.pick(&CUSTOM[..5]).0
                } else {
                    "tool.id"
                };
            }
            let mut node = json!({"within": within, "field": field, "op": op, "value": value});
            if dice.one_in(2) {
                node["where"] = inner(dice);
            }
            json!({"priorDistinctValues": node})
        }
    }
}

fn scope(dice: &mut Dice, family: &str) -> Value {
    let mut scope = Map::new();
    if dice.one_in(3) {
        let users = dice.some(&USERS, 2);
        scope.insert("users".into(), json!(users));
    }
    if dice.one_in(3) {
        let groups: Vec<Value> = dice
            .some(&GROUPS, 2)
            .into_iter()
            .map(|g| json!({"name": g}))
            .collect();
        scope.insert("groups".into(), json!(groups));
    }
    if dice.one_in(8) {
        scope.insert("serviceAccounts".into(), json!(["sa1"]));
    }
    if family == "content" && dice.one_in(10) {
        scope.insert("agents".into(), json!(["claude"]));
    }
    if family == "content" && dice.one_in(10) {
        scope.insert("products".into(), json!(["p1"]));
    }
    if family != "content" && dice.one_in(8) {
        scope.insert("devices".into(), json!(["d1"]));
    }
    if family == "resource" && dice.one_in(3) {
        scope.insert("resources".into(), json!(["ledger", "wiki"]));
    }
    Value::Object(scope)
}

fn exceptions(dice: &mut Dice, family: &str, has_custom: bool, policy: &mut Value) {
    if dice.one_in(6) {
        policy["except"] = condition(dice, family, has_custom, 1);
    }
    if dice.one_in(4) {
        let mut all = Vec::new();
        for id in 0..=dice.below(2) {
            let mut one = json!({"id": format!("e{id}"), "reason": "why not", "conditions": condition(dice, family, has_custom, 1)});
            if dice.one_in(2) {
                // Often the very instant of an event.
                let steps = [
                    0, 1, 999, 1000, 1001, 20_000, 21_000, 60_000, 61_000, 80_000, 3_600_000,
                ];
                let at = START_MS + dice.pick(&steps);
                one["expiresAt"] = json!(jiff::Timestamp::from_millisecond(at).unwrap().to_string());
            }
            all.push(one);
        }
        policy["exceptions"] = json!(all);
    }
}

fn acl(dice: &mut Dice, id: &str) -> Value {
    let server = json!({"field": "mcp.server_id", "op": "eq", "value": dice.pick(&["git", "crm"])});
    let tools = json!({"field": "mcp.tool_id", "op": "in", "value": dice.some(&["read", "write"], 2)});
    let conditions = match dice.below(3) {
        0 => server,
        1 if !tools["value"].as_array().unwrap().is_empty() => json!({"all": [server, tools]}),
        _ => json!({"all": [server]}),
    };
    json!({"id": id, "name": "acl", "enabled": true, "evaluateOn": ["pre_tool"], "conditions": conditions,
        "action": dice.pick(&["allow", "allow", "block"]), "appliesTo": {"users": [dice.pick(&USERS)]}})
}

pub fn policy(dice: &mut Dice, id: &str) -> (&'static str, Value) {
    let family = dice.pick(&FAMILIES);
    if family == "skill_acl" {
        let subjects = match dice.below(3) {
            0 => json!({"everyone": true}),
            1 => json!({"users": [dice.pick(&USERS)]}),
            _ => json!({"groups": [dice.pick(&GROUPS)], "users": [dice.pick(&USERS)]}),
        };
        let skill = dice.pick(&["pdf", "deploy"]);
        return (
            family,
            json!({"id": id, "skillId": skill, "enabled": !dice.one_in(5), "subjects": subjects,
            "effect": dice.pick(&["allow", "allow", "block"])}),
        );
    }
    if family == "content" && dice.one_in(4) {
        return (family, acl(dice, id));
    }
    let has_custom = family == "content" && dice.one_in(2);
    let depth = dice.below(4);
    let mut policy = json!({"id": id, "name": "random", "enabled": !dice.one_in(8), "appliesTo": scope(dice, family),
        "acknowledgeBroadScope": true, "conditions": condition(dice, family, has_custom, depth)});
    exceptions(dice, family, has_custom, &mut policy);
    let action = match family {
        "content" => {
            let mut on = dice.some(&["prompt", "pre_tool", "post_tool", "response"], 4);
            if on.is_empty() {
                on.push("pre_tool");
            }
            policy["evaluateOn"] = json!(on);
            dice.pick(&[
                "allow",
                "block",
                "flag_for_review",
                "redact",
                "filter",
                "nudge",
                "require_approval",
            ])
        }
        "access" => {
            policy["enforcementSurfaces"] = json!(["inline_hook", "endpoint_route"]);
            dice.pick(&["allow", "block", "flag_for_review", "require_approval"])
        }
        _ => {
            policy["enforcement"] = json!(dice.pick(&["enforce", "enforce", "monitor"]));
            dice.pick(&["allow", "block", "flag_for_review", "require_approval"])
        }
    };
    policy["action"] = json!(action);
    if action == "redact" {
        policy["redaction"] = json!({"strategy": "nullify"});
    }
    if action == "filter" {
        policy["filter"] = json!({"collectionPath": "$.rows", "onUnavailable": "block",
            "removeWhere": {"path": "$.a", "op": "eq", "value": null}});
    }
    if has_custom {
        policy["customFields"] = CUSTOM.iter().map(declared).collect();
    }
    (family, policy)
}

/// Returns how a policy declares a field.
pub fn declared((name, kind, _): &(&str, &str, Kind)) -> Value {
    json!({"field": name, "label": "l", "valueType": kind,
        "sourceType": "known_schema", "toolName": "book", "schemaVersionId": "v1"})
}

fn input(dice: &mut Dice, is_plain: bool) -> Value {
    if !is_plain && dice.one_in(8) {
        return dice.pick(&WORDS).into();
    }
    let mut input = Map::new();
    let mut put = |dice: &mut Dice, name: &str, fine: Value| -> Option<Value> {
        let odd = dice
            .pick(&[
                &Value::Null,
                &json!(7),
                &json!("x"),
                &json!([1]),
                &json!({"to": "rm"}),
                &json!("{\"to\": \"rome\"}"),
                &json!(9_007_199_254_740_993_i64),
            ])
            .clone();
        match dice.below(6) {
            0 => None,
            1 if !is_plain => input.insert(name.into(), odd),
            _ => input.insert(name.into(), fine),
        }
    };
    let amount = number(dice);
    put(dice, "amount", amount);
    let city = text(dice, &[]);
    put(dice, "city", city);
    let tags = set(dice, &[], 0);
    put(dice, "tags", tags);
    let to = text(dice, &[]);
    put(dice, "legs", json!([{"to": to}]));
    let urgent = json!(dice.one_in(2));
    put(dice, "urgent", urgent);
    put(dice, "more", json!({"a": 1}));
    for name in ["command", "url"] {
        let one = text(dice, &COMMANDS);
        let words = set(dice, &["rm", "-rf", "/", "ls", "rm -rf /"], 1);
        let fine = if is_plain || dice.one_in(2) { one } else { words };
        put(dice, name, fine);
    }
    let input = Value::Object(input);
    if is_plain || dice.one_in(2) {
        input
    } else {
        spelt(dice, &input).into()
    }
}

/// Spells a document as a text, in one of the ways in which readers of JSON differ.
fn spelt(dice: &mut Dice, input: &Value) -> String {
    let text = input.to_string();
    let inside = &text[1..text.len() - 1];
    let comma = if inside.is_empty() { "" } else { "," };
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!("{{{inside}{comma}\"deep\":{open}{close}}}")
    };
    match dice.below(16) {
        0..=3 => format!(" {text}\n"),
        4 => deep(200),
        5 => deep(3000),
        6 => format!("{{{inside}{comma}\"range\":1e999}}"),
        7 => format!("{{{inside}{comma}\"half\":\"\\ud800\"}}"),
        8 => format!("{{{inside}{comma}}}"),
        9 => format!("\u{feff}{text}"),
        10 => format!("[{text}]"),
        11 => format!("{{{inside}{comma}\"command\":\"ls\",\"c\\u006fmmand\":\"rm\"}}"),
        12 => format!("{{{inside}{comma}\"x\":[{{\"a\":1,\"a\":1}}]}}"),
        13 => format!("{text} {{}}"),
        14 => text
            .replace('7', "1e999")
            .replace("rm", "\\ud800")
            .replace("100", "9007199254740993"),
        _ => "  ".to_owned(),
    }
}

/// Attributes of every event.
const EXTRA: World = &[
    ("agent.id", Text, &["claude", "codex"]),
    ("product.id", Text, &["p1", "p2"]),
    ("skill.id", Text, &["pdf", "deploy"]),
];

fn value(dice: &mut Dice, kind: Kind, texts: &[&str], is_plain: bool) -> Value {
    match kind {
        Text => text(dice, texts),
        Set => set(dice, texts, 0),
        Number => number(dice),
        Boolean => json!(dice.one_in(2)),
        Content | Object => input(dice, is_plain),
    }
}

/// Returns values for some of these attributes of a content event.
pub fn values(dice: &mut Dice, names: &[&str]) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, kind, texts) in world("content").iter().chain(EXTRA) {
        if names.contains(name) && !dice.one_in(4) {
            all.insert((*name).into(), value(dice, *kind, texts, true));
        }
    }
    all
}

pub fn history(dice: &mut Dice, events: usize, knows_all: bool) -> Vec<Plain> {
    let mut at_ms = START_MS;
    let mut all = Vec::new();
    for _ in 0..events {
        // Windows of a second to a day see something of it; equal times are common.
        at_ms += dice.pick(&[0, 0, 1, 999, 1000, 20_000, 60_000, 3_600_000]);
        let family = dice.pick(&["content", "content", "access", "resource", "skill_acl"]);
        let occasion = match family {
            "content" => dice.pick(&["prompt", "pre_tool", "pre_tool", "post_tool", "response"]),
            "access" => dice.pick(&["inline_hook", "endpoint_route", "provider"]),
            "resource" => "resource",
            _ => "skill",
        };
        let mut event = Plain {
            at_ms,
            family,
            occasion,
            attributes: Map::new(),
            missing: Vec::new(),
        };
        for (name, kind, texts) in world(family).iter().chain(EXTRA) {
            let is_rare = *name == "identity.service_account_id" || name.starts_with("tool.input.");
            if is_rare && !dice.one_in(4) {
                continue;
            }
            match dice.below(12) {
                0 if !knows_all => event.missing.push(name),
                0..=2 => {}
                _ => {
                    let value = value(dice, *kind, texts, knows_all);
                    event.attributes.insert((*name).into(), value);
                }
            }
        }
        all.push(event);
    }
    all
}

/// Somebody for some of the words that events have; some words are several people's.
pub fn names(dice: &mut Dice) -> Names {
    let words: [&[&str]; 5] = [
        &["ann", "bob", "cid", "dee", "ann@x.ai", "zoé"],
        &["sa1", "sa2", "bot"],
        &["eng", "ops", "law", "all"],
        &["pdf", "deploy", "acme/pdf"],
        &["ledger", "wiki", "cache"],
    ];
    let mut world = Names {
        is_complete: dice.one_in(6),
        tells_shared: dice.one_in(2),
        ..Names::default()
    };
    for (field, words) in REGISTERS.into_iter().zip(words) {
        for nth in 0..dice.below(5) {
            let words = dice.some(words, 3);
            let groups = (field == "identity.user_id" && dice.one_in(2))
                .then(|| dice.some(&["eng", "id-of-group_ids-0", "id-of-group_ids-1"], 2));
            world.all.push(NamedRecord {
                field,
                id: format!("id-of-{}-{nth}", field.split_once('.').unwrap().1),
                words: words.into_iter().map(|word| respelt(dice, word)).collect(),
                groups: groups.map(|groups| groups.into_iter().map(str::to_owned).collect()),
            });
        }
    }
    world
}

/// What the engine is told of them.
pub fn register(world: &Names) -> Register {
    let mut register = Register::new(world.is_complete);
    for one in &world.all {
        for word in one.words.iter().chain([&one.id]) {
            let record = |one: &&NamedRecord| Record {
                id: one.id.clone(),
                words: one.words.clone(),
                shared: one
                    .words
                    .iter()
                    .filter(|word| world.is_shared(one.field, word))
                    .cloned()
                    .collect(),
                groups: one.groups.clone(),
            };
            let meant: Vec<Record> = world.meant(one.field, word).iter().map(record).collect();
            register.put(Field::named(one.field).unwrap(), word, &meant);
        }
    }
    register
}

/// Another spelling of a word, or the same.
pub fn respelt(dice: &mut Dice, word: &str) -> String {
    match dice.below(14) {
        0 => word.to_uppercase(),
        1 => format!(" {word}\u{a0}"),
        2 => format!("\u{200b} {word}"),
        3 => word.chars().flat_map(|c| [c, '\u{ad}']).collect(),
        4 => word.replace('é', "e\u{301}"),
        _ => word.to_owned(),
    }
}

/// Another word for what a word may mean, in some spelling.
fn renamed(dice: &mut Dice, world: &Names, field: &str, text: &str) -> String {
    let meant = world.meant(field, text);
    if dice.one_in(3) && !meant.is_empty() {
        let one = meant[dice.below(meant.len())];
        let place = dice.below(one.words.len() + 1);
        let other = one.words.get(place).unwrap_or(&one.id).clone();
        return respelt(dice, &other);
    }
    if dice.one_in(40) {
        return dice.pick(&["\u{200b}", " ", ""]).to_owned();
    }
    respelt(dice, text)
}

/// Spells the names of events in other ways.
pub fn respell_history(dice: &mut Dice, world: &Names, history: &mut [Plain]) {
    for event in history {
        for (field, value) in &mut event.attributes {
            if is_name(field) {
                respell(dice, world, field, value);
            }
        }
    }
}

/// Makes claims of the groups of some events.
pub fn claim_history(dice: &mut Dice, history: &mut [Plain]) {
    for event in history.iter_mut().filter(|_| dice.one_in(3)) {
        let groups = event.attributes.get_mut("identity.group_ids");
        for group in groups.and_then(Value::as_array_mut).into_iter().flatten() {
            // A name that nobody sees stays one.
            if let Some(word) = group.as_str().filter(|word| !fold(word).is_empty()) {
                *group = json!(provost_policy::claim(word));
            }
        }
    }
}

/// Tells a register what the claims of events are.
pub fn put_claims(register: &mut Register, world: &Names, history: &[Plain]) {
    let field = "identity.group_ids";
    let groups = history
        .iter()
        .filter_map(|event| event.attributes.get(field)?.as_array());
    for text in groups.flatten().filter_map(Value::as_str) {
        let Some(claim) = provost_policy::claimed(text) else {
            continue;
        };
        let meant = world.meant(field, claim);
        let named = meant
            .iter()
            .flat_map(|one| one.words.iter().chain([&one.id]))
            .cloned();
        let words: Vec<String> = named.chain([claim.to_owned()]).collect();
        let id = provost_policy::claim(&fold(claim));
        let record = Record {
            shared: words.iter().cloned().chain([id.clone()]).collect(),
            id,
            words,
            groups: None,
        };
        register.put(Field::GROUPS, text, &[record]);
    }
}

/// Spells the names of policies in other ways.
pub fn respell_policy(dice: &mut Dice, world: &Names, policy: &mut Value) {
    for member in ["appliesTo", "subjects"] {
        let lists = [
            ("users", "identity.user_id"),
            ("groups", "identity.group_ids"),
            ("serviceAccounts", "identity.service_account_id"),
            ("devices", "device.id"),
            ("resources", "resource.id"),
        ];
        for (list, field) in lists {
            let Some(items) = policy.get_mut(member).and_then(|scope| scope.get_mut(list)) else {
                continue;
            };
            for item in items.as_array_mut().unwrap() {
                let name = if item.is_string() { item } else { &mut item["name"] };
                respell(dice, world, field, name);
                // A scope names somebody.
                if name == "" {
                    *name = json!("ann");
                }
            }
            let items = items.as_array_mut().unwrap();
            let mut seen: Vec<Value> = Vec::new();
            items.retain(|item| {
                let is_new = !seen.contains(item);
                seen.push(item.clone());
                is_new
            });
        }
    }
    for member in ["conditions", "except", "exceptions"] {
        if let Some(node) = policy.get_mut(member) {
            respell_node(dice, world, node);
        }
    }
    if let Some(skill) = policy.get_mut("skillId") {
        *skill = respelt(dice, skill.as_str().unwrap()).into();
    }
}

fn is_closed(field: &str) -> bool {
    super::naive::CLOSED.iter().any(|(of, _)| *of == field)
}

fn respell_node(dice: &mut Dice, world: &Names, node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(|item| respell_node(dice, world, item)),
        Value::Object(members) => {
            let field = members
                .get("field")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let is_list = members.get("op").is_some_and(|op| op != "matches");
            // The words of a closed list are written as the list has them.
            if is_closed(&field) {
                return;
            }
            if is_name(&field) && is_list && !members.contains_key("within") {
                if let Some(value) = members.get_mut("value") {
                    respell(dice, world, &field, value);
                }
                return;
            }
            members
                .values_mut()
                .for_each(|member| respell_node(dice, world, member));
        }
        _ => {}
    }
}

fn respell(dice: &mut Dice, world: &Names, field: &str, value: &mut Value) {
    match value {
        Value::String(text) => *text = renamed(dice, world, field, text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| respell(dice, world, field, item)),
        _ => {}
    }
}

fn is_name(field: &str) -> bool {
    super::naive::NAMES.contains(&field)
}

//! Random policies and histories over a small world, so that things meet.

use super::naive::Plain;
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

    fn some<'a>(&mut self, list: &[&'a str], most: usize) -> Vec<&'a str> {
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

fn input(dice: &mut Dice) -> Value {
    if dice.one_in(4) {
        return dice.pick(&WORDS).into();
    }
    let mut input = Map::new();
    let mut put = |dice: &mut Dice, name: &str, fine: Value| -> Option<Value> {
        let odd = dice
            .pick(&[&Value::Null, &json!(7), &json!("x"), &json!([1])])
            .clone();
        match dice.below(6) {
            0 => None,
            1 => input.insert(name.into(), odd),
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
    Value::Object(input)
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
        let extra: World = &[
            ("agent.id", Text, &["claude", "codex"]),
            ("product.id", Text, &["p1", "p2"]),
            ("skill.id", Text, &["pdf", "deploy"]),
        ];
        for (name, kind, texts) in world(family).iter().chain(extra) {
            if *name == "identity.service_account_id" && !dice.one_in(4) {
                continue;
            }
            match dice.below(12) {
                0 if !knows_all => event.missing.push(name),
                0..=2 => {}
                _ => {
                    let value = match kind {
                        Text => text(dice, texts),
                        Set => set(dice, texts, 0),
                        Number => number(dice),
                        Boolean => json!(dice.one_in(2)),
                        Content | Object => input(dice),
                    };
                    event.attributes.insert((*name).into(), value);
                }
            }
        }
        all.push(event);
    }
    all
}

//! How fast decisions are: row by row, column by column, by projection, and with a Rego module per event.
//!
//! `cargo run --release -p provost-policy --example measure_judging [events]`; one thread, medians of three passes, processor time.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark measures time and stops at the first surprise"
)]

use provost_policy::{
    BATCH_ROWS, Batch, Definition, Event, Family, Field, Occasion, PolicySet, Projection, Scan,
    SubjectStates, Symbols, Tally, Value, sha256_hex,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value as Json, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

const SEED: u64 = 4;
const POLICIES: usize = 50;
const TOOLS: u64 = 300;
const USERS: u64 = 1000;
const GROUPS: u64 = 40;

fn below(rng: &mut ChaCha8Rng, end: u64) -> u64 {
    rng.next_u64() % end
}

/// A policy as organizations write them: a scope, a tool or server, and one or two attributes.
fn policy(rng: &mut ChaCha8Rng, n: usize, has_past: bool) -> Json {
    let tools: Vec<String> = (0..=below(rng, 8))
        .map(|_| format!("tool{}", below(rng, TOOLS)))
        .collect();
    let mut all = vec![json!({"field": "tool.id", "op": "in", "value": tools})];
    if n % 10 == 9 {
        // Some look at every tool.
        all.clear();
    }
    all.push(match n % 5 {
        0 => json!({"field": "llm.input_tokens", "op": "gt", "value": 2000 + 100 * n}),
        1 => json!({"field": "classification.sensitivity_labels", "op": "contains_any", "value": ["secret", "pii"]}),
        2 => json!({"field": "tool.input.command", "op": "contains", "value": "rm -rf"}),
        3 => json!({"field": "llm.model", "op": "starts_with", "value": "gpt"}),
        _ => json!({"not": {"field": "mcp.server_id", "op": "in", "value": ["server1", "server2", "server3"]}}),
    });
    if has_past && n.is_multiple_of(5) {
        all.push(json!({"eventCount": {"within": "10m", "op": "gte", "value": 5,
            "where": {"field": "tool.id", "op": "in", "value": tools}}}));
    }
    let actions = ["block", "require_approval", "nudge", "flag_for_review"];
    let mut policy = json!({"id": format!("p{n}"), "name": "benchmark", "evaluateOn": ["pre_tool", "prompt"],
        "acknowledgeBroadScope": true, "action": actions[n % 4],
        "conditions": {"all": all}});
    if !n.is_multiple_of(3) {
        let groups: BTreeSet<String> = (0..=below(rng, 3))
            .map(|_| format!("group{}", below(rng, GROUPS)))
            .collect();
        policy["appliesTo"] = json!({"groups": groups});
    }
    policy
}

fn set(policies: usize, has_past: bool) -> PolicySet {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let read =
        |n| Arc::new(Definition::read(Family::Content, &policy(&mut rng, n, has_past)).expect("a policy"));
    PolicySet::new((0..policies).map(read).collect::<Vec<_>>()).unwrap()
}

fn rego() -> PolicySet {
    let module = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\n\
        match := {\"matched\": true} if {\n  input.tool.id in {\"tool1\", \"tool2\", \"tool3\"}\n  \
        input.llm.input_tokens > 2500\n  \"group1\" in input.identity.group_ids\n}";
    let definition = json!({"id": "rego", "name": "benchmark", "evaluateOn": ["pre_tool"], "action": "block",
        "acknowledgeBroadScope": true, "logic": {"kind": "rego", "languageVersion": "forge.rego.v1",
        "entrypoint": "data.forge.content.match", "module": module, "moduleSha256": sha256_hex(module.as_bytes())}});
    PolicySet::new([Arc::new(Definition::read(Family::Content, &definition).unwrap())]).unwrap()
}

/// Events of tools, users and models with skew; `distinct` makes nearly every one different.
fn events(symbols: &mut Symbols, count: usize, distinct: bool) -> Vec<Event> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED + 1);
    let mut text = |prefix: &str, n: u64| symbols.intern(&format!("{prefix}{n}"));
    let tools: Vec<_> = (0..TOOLS).map(|n| text("tool", n)).collect();
    let users: Vec<_> = (0..USERS).map(|n| text("user", n)).collect();
    let servers: Vec<_> = (0..30).map(|n| text("server", n)).collect();
    let models: Vec<_> = ["gpt-5", "gpt-5-mini", "claude-x", "gemini-y"]
        .map(|m| symbols.intern(m))
        .to_vec();
    let commands: Vec<_> = (0..2000)
        .map(|n| {
            symbols.intern(&format!(
                "{} {n}",
                if n % 50 == 0 { "rm -rf /tmp/" } else { "ls -l" }
            ))
        })
        .collect();
    let labels: Vec<_> = [
        vec![],
        vec!["public"],
        vec!["pii"],
        vec!["secret", "pii"],
        vec!["internal"],
    ]
    .into_iter()
    .map(|set| symbols.intern_set(set))
    .collect();
    let groups: Vec<_> = (0..USERS)
        .map(|_| {
            let names: Vec<String> = (0..=below(&mut rng, 5))
                .map(|_| format!("group{}", below(&mut rng, GROUPS)))
                .collect();
            symbols.intern_set(names.iter().map(String::as_str))
        })
        .collect();
    let skewed = |rng: &mut ChaCha8Rng, len: usize| {
        let at = below(rng, len as u64).min(below(rng, len as u64));
        usize::try_from(at).unwrap()
    };
    (0..count)
        .map(|n| {
            let rng = &mut rng;
            let occasion = if n % 4 == 0 {
                Occasion::Prompt
            } else {
                Occasion::PreTool
            };
            let mut event = Event::new(1_780_000_000_000 + 78 * i64::try_from(n).unwrap(), occasion);
            let user = skewed(rng, users.len());
            event.set(Field::USER, Value::Text(users[user]));
            event.set(Field::GROUPS, Value::Set(groups[user]));
            event.set(Field::TOOL, Value::Text(tools[skewed(rng, tools.len())]));
            event.set(
                Field::MCP_SERVER,
                Value::Text(servers[skewed(rng, servers.len())]),
            );
            let named = |name| Field::named(name).unwrap();
            event.set(named("llm.model"), Value::Text(models[skewed(rng, 4)]));
            event.set(
                named("tool.input.command"),
                Value::Text(commands[skewed(rng, commands.len())]),
            );
            event.set(
                named("classification.sensitivity_labels"),
                Value::Set(labels[skewed(rng, labels.len())]),
            );
            let tokens = if distinct {
                below(rng, 1 << 40)
            } else {
                1000 * (1 + below(rng, 8))
            };
            event.set(
                named("llm.input_tokens"),
                Value::Number(tokens as f64 / if distinct { 1e8 } else { 1.0 }),
            );
            event
        })
        .collect()
}

/// Returns the time that this thread had on a processor: other work on the machine does not count.
fn on_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanoseconds: f64 = stat.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1e9
}

fn median(mut pass: impl FnMut() -> u64) -> (f64, u64) {
    let mut times = Vec::new();
    let mut check = 0;
    for _ in 0..3 {
        let start = on_cpu();
        check = pass();
        times.push(on_cpu() - start);
    }
    times.sort_by(f64::total_cmp);
    (times[1], check)
}

fn report(name: &str, events: usize, (seconds, blocked): (f64, u64)) {
    let each = seconds / events as f64;
    println!(
        "| {name:<44} | {:>9.3} | {:>9.2} | {blocked:>9} |",
        each * 1e6,
        1.0 / each / 1e6
    );
}

fn rows(set: &PolicySet, events: &[Event], symbols: &Symbols) -> u64 {
    let mut chronicle = SubjectStates::new();
    let mut blocked = 0;
    for event in events {
        blocked += u64::from(set.judge(event, symbols, &chronicle).action.word() == "block");
        chronicle.observe(set, event, symbols);
    }
    blocked
}

fn columns(set: &PolicySet, batches: &[Batch], symbols: &Symbols) -> u64 {
    let mut scan = Scan::new(set);
    let mut tally = Tally::default();
    for batch in batches {
        scan.judge(batch, symbols);
        tally.add(&scan);
    }
    tally.by_action[6]
}

fn grouped(set: &PolicySet, events: &[Event], symbols: &Symbols) -> u64 {
    let projection = Projection::of(&[set]);
    let mut seen: HashMap<Vec<u64>, bool> = HashMap::new();
    let none = SubjectStates::new();
    let judge = |event: &Event| set.judge(event, symbols, &none).action.word() == "block";
    events
        .iter()
        .map(|event| u64::from(*seen.entry(projection.key(event)).or_insert_with(|| judge(event))))
        .sum()
}

fn main() {
    let count = std::env::args()
        .nth(1)
        .map_or(1_000_000, |n| n.parse().expect("a number of events"));
    let mut symbols = Symbols::new();
    let repeated = events(&mut symbols, count, false);
    let distinct = events(&mut symbols, count, true);
    let (native, past, module) = (set(POLICIES, false), set(POLICIES, true), rego());
    let in_batches = |set: &PolicySet, events: &[Event]| -> Vec<Batch> {
        let fields = Projection::of(&[set]);
        events
            .chunks(BATCH_ROWS)
            .map(|chunk| Batch::of(chunk, fields.fields()).unwrap())
            .collect()
    };
    let some: usize = (0..1000)
        .map(|at| native.candidates(&repeated[at * (count / 1000)], &symbols))
        .sum();
    println!(
        "{POLICIES} policies, {count} events, seed {SEED}; {} of them can match an event on average\n",
        some as f64 / 1000.0
    );
    println!(
        "| {:<44} | {:>9} | {:>9} | {:>9} |",
        "one thread", "us/event", "M/s", "blocked"
    );
    println!("|{:-<46}|{:->11}|{:->11}|{:->11}|", "", ":", ":", ":");
    for (name, events) in [("repeated", &repeated), ("distinct", &distinct)] {
        let batches = in_batches(&native, events);
        report(
            &format!("row by row, {name}"),
            count,
            median(|| rows(&native, events, &symbols)),
        );
        report(
            &format!("columns, {name}"),
            count,
            median(|| columns(&native, &batches, &symbols)),
        );
    }
    report(
        "by projection (hash of each row), repeated",
        count,
        median(|| grouped(&native, &repeated, &symbols)),
    );
    let batches = in_batches(&past, &repeated);
    report(
        "row by row, ten history conditions",
        count,
        median(|| rows(&past, &repeated, &symbols)),
    );
    report(
        "columns, ten history conditions",
        count,
        median(|| columns(&past, &batches, &symbols)),
    );
    let (many, some) = (set(1000, false), &repeated[..count / 5]);
    report(
        "row by row, 1000 policies",
        some.len(),
        median(|| rows(&many, some, &symbols)),
    );
    let batches = in_batches(&many, some);
    report(
        "columns, 1000 policies",
        some.len(),
        median(|| columns(&many, &batches, &symbols)),
    );
    let few = &repeated[..count / 20];
    report(
        "one Rego module per event, row by row",
        few.len(),
        median(|| rows(&module, few, &symbols)),
    );
}

//! How long one evaluation of a realistic Rego module takes, as a row asks it.
//!
//! `cargo run --profile ci -p provost-policy --example measure_modules [events]`; one thread, medians of five passes.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and stops at the first surprise"
)]

use provost_policy::{
    Definition, Event, Family, Field, Occasion, PolicySet, Record, Register, SubjectStates, Symbols,
    sha256_hex,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

const MODULE: &str = r#"package forge.content
import rego.v1
default match := {"matched": false}

shells := {"Bash", "shell", "exec"}
guarded := {"grp_01m7w5wv912ppfxsngvw9xk5aa", "grp_01m7w5wv912ppfxsngvw9xk5ab", "grp_01m7w5wv912ppfxsngvw9xk5ac"}
patterns := ["rm\\s+-rf", "mkfs", "curl .*\\| *sh"]

is_shell if input.tool.id in shells
is_guarded if { some group in input.identity.group_ids; group in guarded }
is_dangerous if { some pattern in patterns; regex.match(pattern, input.tool.input.command) }
default has_ticket := false
has_ticket if startswith(input.tool.input.ticket, "OPS-")

match := {"matched": true, "reasonCode": "dangerous"} if { is_shell; is_guarded; is_dangerous; not has_ticket }
match := {"matched": true, "reasonCode": "secret"} if {
  is_string(input.request.prompt)
  contains(lower(input.request.prompt), "password")
}
"#;

/// One more rule, which compares an id with texts: every user is asked about by each of two words.
const BY_WORDS: &str = r#"
match := {"matched": true, "reasonCode": "who"} if input.identity.user_id in {"ada@acme.test", "eve@acme.test"}
"#;

fn main() {
    let count: usize = std::env::args().nth(1).map_or(20_000, |n| n.parse().unwrap());
    measure(count, MODULE, &["nothing missing", "three missing"]);
    measure(
        count,
        &format!("{MODULE}{BY_WORDS}"),
        &["an id compared with texts"],
    );
}

/// Two words for each user.
fn register() -> Arc<Register> {
    let mut register = Register::new(false);
    for n in 0..97 {
        let id = format!("usr_{n}");
        let record = Record {
            words: vec![format!("user-{n}@acme.test"), format!("user.{n}@mail.test")],
            id: id.clone(),
            ..Record::default()
        };
        register.put(Field::USER, &id, &[record]);
    }
    Arc::new(register)
}

fn measure(count: usize, module: &str, names: &[&str]) {
    let definition = json!({"id": "m", "name": "m", "evaluateOn": ["pre_tool"], "action": "block",
        "acknowledgeBroadScope": true, "logic": {"kind": "rego", "languageVersion": "forge.rego.v1",
        "entrypoint": "data.forge.content.match", "module": module, "moduleSha256": sha256_hex(module.as_bytes())}});
    let set = PolicySet::new([Arc::new(Definition::read(Family::Content, &definition).unwrap())]).unwrap();
    for name in names {
        let missing = match *name {
            "three missing" => &["llm.model", "tool.result", "identity.roles"][..],
            _ => &[][..],
        };
        let missing: Vec<&str> = missing
            .iter()
            .copied()
            .filter(|name| provost_policy::Field::named(name).is_some())
            .collect();
        let mut symbols = Symbols::knowing(register());
        let events: Vec<Event> = (0..count)
            .map(|n| {
                let attributes = json!({"identity.user_id": format!("usr_{}", n % 97),
                    "identity.group_ids": ["grp_all", if n % 3 == 0 { "grp_01m7w5wv912ppfxsngvw9xk5aa" } else { "grp_01m7w5wv912ppfxsngvw9xk5ad" }],
                    "tool.id": if n % 4 == 0 { "Read" } else { "Bash" },
                    "tool.input": {"command": format!("ls -l /srv/{n}"), "timeout": 5, "cwd": "/srv"}});
                Event::read(
                    &mut symbols,
                    1_780_000_000_000,
                    Occasion::PreTool,
                    attributes.as_object().unwrap(),
                    &missing,
                )
                .unwrap()
            })
            .collect();
        let none = SubjectStates::new();
        let mut passes: Vec<f64> = (0..5)
            .map(|_| {
                let begin = Instant::now();
                let blocked = events
                    .iter()
                    .filter(|event| set.judge(event, &symbols, &none).unknown)
                    .count();
                let micros = begin.elapsed().as_secs_f64() * 1e6 / count as f64;
                std::hint::black_box(blocked);
                micros
            })
            .collect();
        passes.sort_by(f64::total_cmp);
        println!("{name}: {:.2} µs an event", passes[2]);
    }
}

//! What it costs to ask a module in a worker instead of in this process: `measure_workers PROGRAM [ROUNDS]`.
#![forbid(unsafe_code)]

use provost_areas_policy::modules::{Runs, Workers};
use provost_policy::Family;
use provost_policy::rego::{InProcess, Module, Runner};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const MODULE: &str = r#"package forge.content
import rego.v1
default match := {"matched": false}
match := {"matched": true, "reasonCode": "shell"} if {
    input.tool.id in {"Bash", "Shell", "Terminal"}
    some word in dangerous
    contains(input.tool.input.command, word)
}
dangerous := {"rm -rf", "mkfs", "dd if="}
"#;

#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn measure(module: &Module, runner: &dyn Runner, input: &Value, rounds: usize) -> [Duration; 2] {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let said = module.evaluate_by(runner, input);
            assert!(said.is_ok(), "{said:?}");
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    [times[rounds / 2], times[rounds * 99 / 100]]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let program = words
        .next()
        .ok_or("name the program that workers are started from")?;
    let rounds: usize = words.next().map_or(Ok(20_000), |word| word.parse())?;
    let module = Module::compile(Family::Content, MODULE).map_err(|found| format!("{found:?}"))?;
    // Workers start in another folder.
    let program = PathBuf::from(program).canonicalize()?;
    let workers = Workers::of(program, Duration::from_secs(5), Duration::ZERO);
    let runs = Runs::of_workers(&workers);
    let input = json!({ "stage": "pre_tool", "identity": { "user_id": "usr_1", "group_ids": ["grp_1", "grp_2"] },
        "tool": { "id": "Bash", "input": { "command": "ls -la /var/log && rm -rf /tmp/build" } } });
    measure(&module, &runs, &input, rounds.min(1000));
    let [own, own_99] = measure(&module, &InProcess, &input, rounds);
    let [other, other_99] = measure(&module, &runs, &input, rounds);
    println!("in this process   p50 {own:?}  p99 {own_99:?}");
    println!("in a worker       p50 {other:?}  p99 {other_99:?}");
    println!("the hop           p50 {:?}", other.saturating_sub(own));
    Ok(())
}

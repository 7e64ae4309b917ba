//! Sets with modules: grouped or not, they decide as the same policies written natively.

use crate::random::{self, Dice};
use crate::support::*;
use provost_policy::sha256_hex;
use serde_json::json;

/// A native condition and the body of the same rule.
const TWINS: [(&str, &str); 6] = [
    (
        r#"{"field": "tool.id", "op": "eq", "value": "shell"}"#,
        "input.tool.id == \"shell\"",
    ),
    (
        r#"{"field": "identity.group_ids", "op": "contains_any", "value": ["eng", "law"]}"#,
        "count({g | some g in input.identity.group_ids} & {\"eng\", \"law\"}) > 0",
    ),
    (
        r#"{"field": "llm.input_tokens", "op": "gte", "value": 2}"#,
        "input.llm.input_tokens >= 2",
    ),
    (
        r#"{"field": "request.prompt", "op": "matches", "value": "^[a-m]"}"#,
        "regex.match(\"^[a-m]\", input.request.prompt)",
    ),
    (
        r#"{"not": {"field": "mcp.server_id", "op": "exists"}}"#,
        "not has_server",
    ),
    (
        r#"{"all": [{"field": "tool.id", "op": "starts_with", "value": "b"}, {"field": "identity.user_id", "op": "neq", "value": "ann"}]}"#,
        "startswith(input.tool.id, \"b\")\n input.identity.user_id != \"ann\"",
    ),
];

#[test]
fn modules_decide_like_native_policies_however_they_are_judged() {
    let mut changed = 0;
    for seed in 60_000..60_024 {
        let mut dice = Dice::new(seed);
        let (condition, body) = dice.pick(&TWINS);
        let module = format!(
            "package forge.content\nimport rego.v1\ndefault match := {{\"matched\": false}}\n\
             has_server if is_string(input.mcp.server_id)\nmatch := {{\"matched\": true}} if {{\n {body}\n}}\n"
        );
        let mut native = json!({"id": "twin", "name": "twin", "enabled": true, "acknowledgeBroadScope": true,
            "evaluateOn": ["pre_tool", "prompt"], "action": "block"});
        let mut rego = native.clone();
        native["conditions"] = serde_json::from_str(condition).unwrap();
        rego["logic"] = json!({"kind": "rego", "languageVersion": "forge.rego.v1",
            "entrypoint": "data.forge.content.match", "moduleSha256": sha256_hex(module.as_bytes()), "module": module});
        let empty = compile(&Vec::new());
        let [native, rego] = [native, rego].map(|policy| compile(&vec![("content", policy)]));
        let history = random::history(&mut dice, 60, true);
        let storage = std::sync::Arc::new(Memory::default());
        let sources = sources(&storage, &history, &[true, false, false]);
        let mut expected = whole(&job(&empty, &native, sources.clone(), &everything())).results;
        expected.samples.clear();
        for may_group in [true, false] {
            for threads in [1, 2] {
                let mut job = job(&empty, &rego, sources.clone(), &everything());
                job.tuning.may_group = may_group;
                job.threads = threads;
                let mut found = whole(&job).results;
                check(&found);
                // Samples differ: a module can see every attribute.
                found.samples.clear();
                assert_eq!(found, expected, "seed {seed}: {condition}");
            }
        }
        let same = whole(&job(&native, &rego, sources, &everything())).results;
        assert_eq!((same.changed, same.unknown), (0, 0), "seed {seed}: {condition}");
        changed += expected.changed;
    }
    assert!(changed > 100, "{changed}");
}

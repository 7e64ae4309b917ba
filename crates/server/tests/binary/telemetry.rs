//! A real exporter in a process of its own, and a server that is killed after it said yes (HS-1, OT-7).
//!
//! `PROVOST_TEST_EXPORTER_PYTHON` names a Python that has what `clients/requirements.txt` says; `cargo xtask test` makes
//! one. With `PROVOST_TEST_REQUIRE_EXPORTER=1` its absence is a failure.

use super::harness::{get, homes};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where the tools are; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Proves OT-7.
#[test]
fn what_a_real_exporter_was_told_is_accepted_outlives_a_kill() {
    let Some(python) = variable("PROVOST_TEST_EXPORTER_PYTHON") else {
        assert!(
            variable("PROVOST_TEST_REQUIRE_EXPORTER").as_deref() != Some("1"),
            "PROVOST_TEST_EXPORTER_PYTHON is not set, and PROVOST_TEST_REQUIRE_EXPORTER is"
        );
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/otlp.py");
    for home in homes("telemetry") {
        let token = home.init();
        let mut server = home.serve(&[]);
        let mut exporter = Command::new(&python);
        exporter
            .arg(&script)
            .env("PROVOST_URL", format!("http://127.0.0.1:{}", server.port))
            .env("PROVOST_ORGANIZATION", "acme")
            .env("PROVOST_TOKEN", &token);
        let output = exporter.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert_eq!(said, "accepted: 700 logs, 30 spans\n");
        server.child.kill().unwrap();
        server.child.wait().unwrap();

        let server = home.serve(&[]);
        let base = "/api/headless/v1/organizations/acme/policies/history";
        let ask = |rest: &str| -> Value {
            let (status, body) = get(server.port, &format!("{base}{rest}"), Some(&token));
            assert_eq!(status, 200, "{body}");
            serde_json::from_str(&body).unwrap()
        };
        assert_eq!(ask("/status")["events"], 2 * (700 + 30));
        // Several spans end in one millisecond, so that their order says nothing.
        let calls = ask("?limit=100&tool=refund&occasion=post_tool")["events"].clone();
        let calls = calls.as_array().unwrap();
        assert!(
            calls.iter().all(|call| call["subject"]["id"] == "bo"),
            "{calls:?}"
        );
        let ids: BTreeSet<String> = calls
            .iter()
            .map(|call| call["callId"].as_str().unwrap().to_owned())
            .collect();
        let sent: BTreeSet<String> = (0..30).map(|number| format!("call_{number}")).collect();
        assert_eq!((calls.len(), ids), (30, sent));
        assert_eq!(
            ask("?limit=1&subjectId=ada%40example.com")["events"][0]["session"],
            "from-a-real-exporter"
        );
    }
}

//! Preview = performance, on random contents, through the whole application (R19).
//!
//! The pure half, on ten thousand pairs, stands beside `changes.rs`.

use super::{perform, preview, profile, publish_all};
use crate::support::{App, Dice, each_with, workload};
use provost_kernel::kernel::Settings;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => json!(dice.chance(2)),
        2 => json!(dice.below(3)),
        3 => json!(format!("w{}", dice.below(3))),
        4 => (0..dice.below(3)).map(|_| value(dice, depth - 1)).collect(),
        _ => members(dice, depth - 1).into(),
    }
}

fn members(dice: &mut Dice, depth: usize) -> Map<String, Value> {
    let names = ["a", "b", "c/d", "e~f", "deep", ""];
    let count = dice.below(5);
    (0..count)
        .map(|_| ((*dice.pick(&names)).to_owned(), value(dice, depth)))
        .collect()
}

/// What a machine holds, as one document.
async fn delivered(app: &App, path: &str) -> Value {
    let reply = super::current(app, path).await;
    let mut document = json!({ "enforced": {}, "defaults": {} });
    for file in reply.ok()["files"].as_array().unwrap() {
        let role = file["role"].as_str().unwrap();
        document[role] = serde_json::from_str(file["content"].as_str().unwrap()).unwrap();
    }
    document
}

/// Does to a document what a preview says, by its words alone.
fn apply(document: &mut Value, changes: &[Value]) {
    for change in changes {
        let path = change["path"].as_str().unwrap();
        let (parent, name) = path.rsplit_once('/').unwrap();
        let name = name.replace("~1", "/").replace("~0", "~");
        let parent = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        let old = match change["op"].as_str().unwrap() {
            "remove" => parent.remove(&name),
            _ => parent.insert(name, change["after"].clone()),
        };
        assert_eq!(old.as_ref(), change.get("before"), "{path}");
        assert_eq!(path.split('/').nth(1), change["class"].as_str());
    }
}

/// Proves MC-4.
#[test]
fn a_performance_changes_exactly_what_its_preview_said() {
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    each_with("mc_random", &settings, |app: Arc<App>| async move {
        let mut dice = Dice::new("managed configuration");
        let path = profile(&app, "generic_json").await;
        let mut performed = 0;
        let rounds = workload("PROVOST_TEST_ROLLBACKS", 50, 150);
        for _ in 0..rounds {
            let mut content =
                || json!({ "enforced": members(&mut dice, 3), "defaults": members(&mut dice, 2) });
            let (one, two) = (content(), content());
            let source = publish_all(&app, &path, one).await;
            publish_all(&app, &path, two).await;
            let mut document = delivered(&app, &path).await;
            let shown = preview(&app, &path, json!({ "sourceReleaseId": source["id"] })).await;
            let changes = shown.ok()["changes"].as_array().unwrap().clone();
            assert_eq!(shown.json["changesTotal"], changes.len());
            let body = json!({ "sourceReleaseId": source["id"], "previewToken": shown.json["previewToken"] });
            let done = perform(&app, &path, body).await;
            assert_eq!(done.ok()["changesTotal"], changes.len());
            assert_eq!(done.json["created"], !changes.is_empty());
            assert_eq!(shown.json.get("wouldCreate").is_some(), !changes.is_empty());
            if !changes.is_empty() {
                performed += 1;
                assert_eq!(
                    done.json["release"]["version"],
                    shown.json["wouldCreate"]["version"]
                );
            }
            apply(&mut document, &changes);
            assert_eq!(delivered(&app, &path).await, document);
        }
        assert!(3 * performed > 2 * rounds, "{performed} of {rounds}");
    });
}

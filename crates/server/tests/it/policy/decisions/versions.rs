//! The version that an answer names is the one that made it (DE-2), while policies are written.

use super::{ask, call, content, policy};
use crate::support::{App, each};
use provost_areas_policy::policies;
use provost_policy::{Event, Family, Occasion, SubjectStates, Symbols};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinSet;

fn event(n: usize) -> Value {
    json!({ "tool.id": format!("t{}", n % 5), "tool.input": { "n": n } })
}

/// Proves DE-2.
#[test]
fn every_answer_is_the_judgement_of_the_version_that_it_names() {
    each("decide_versions", |app: Arc<App>| async move {
        for tool in 0..5 {
            let change =
                json!({ "conditions": { "field": "tool.id", "op": "eq", "value": format!("t{tool}") } });
            policy(
                &app,
                Family::Content,
                content(&format!("p{tool}"), "block", &change),
            )
            .await;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let mut askers = JoinSet::new();
        for asker in 0..8 {
            let (app, is_over) = (app.clone(), is_over.clone());
            askers.spawn(async move {
                let mut answers = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let n = answers.len() * 8 + asker;
                    let reply = ask(&app, json!({ "events": [call(&event(n))], "record": "buffered" })).await;
                    answers.push((n, reply.ok().clone()));
                }
                answers
            });
        }
        let words = super::words();
        for write in 0_usize..60 {
            let tool = write % 5;
            let change = json!({ "conditions": { "field": "tool.id", "op": "eq", "value": format!("t{tool}") },
                "enabled": write % 7 != 3 });
            let definition = content(&format!("p{tool}"), words[write % words.len()], &change);
            let body = json!({ "definition": definition, "expectedRevision": 1 + write / 5 });
            app.write("PUT", &format!("/content-policies/p{tool}"), body)
                .await
                .ok();
        }
        is_over.store(true, Ordering::SeqCst);
        let mut answers = Vec::new();
        while let Some(more) = askers.join_next().await {
            answers.extend(more.unwrap());
        }
        let named: BTreeSet<String> = answers
            .iter()
            .map(|(_, answer)| answer["policySetVersion"]["id"].as_str().unwrap().to_owned())
            .collect();
        let mut versions = BTreeMap::new();
        for id in named {
            let org = app.organization.clone();
            let wanted = id.clone();
            let version = app
                .kernel
                .read_system(move |tx| policies::version(tx, &org, &wanted))
                .await;
            versions.insert(id, version.unwrap().unwrap());
        }
        assert!(versions.len() > 1, "writes and decisions never met");
        for (n, answer) in &answers {
            let version = &versions[answer["policySetVersion"]["id"].as_str().unwrap()];
            assert_eq!(answer["policySetVersion"]["digest"], version.set.digest());
            let mut symbols = Symbols::new();
            let attributes = event(*n);
            let attributes = attributes.as_object().unwrap();
            let at = app.now().as_ms();
            let event = Event::read(&mut symbols, at, Occasion::PreTool, attributes, &[]).unwrap();
            let outcome = version.set.judge(&event, &symbols, &SubjectStates::new());
            let decision = &answer["decisions"][0];
            assert_eq!(decision["action"], outcome.action.word(), "{n}");
            assert_eq!(
                decision["policyIds"],
                json!(outcome.deciding().collect::<Vec<_>>())
            );
        }
    });
}

#[test]
fn before_the_first_policy_the_empty_version_decides() {
    each("decide_empty", |app: Arc<App>| async move {
        let reply = ask(&app, json!({ "events": [call(&json!({ "tool.id": "t" }))] })).await;
        assert_eq!(
            reply.ok()["policySetVersion"]["id"],
            "psv_00000000000000000000000000"
        );
        assert_eq!(reply.json["decisions"][0]["action"], "allow");
        assert_eq!(reply.json["decisions"][0]["reasons"], json!([]));
    });
}

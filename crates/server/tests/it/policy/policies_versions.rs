//! Versions of the policy set: reproducible for ever, without gaps, one for each change of what decides.

use crate::areas::policies::definition;
use crate::support::{App, Dice, each, fresh_key, with_trio, workload};
use provost_areas_policy::policies::{self, BoundChange, Live};
use provost_kernel::db::{Access, Conn, Tx};
use provost_kernel::{Code, Result};
use provost_policy::{Definition, Family, PolicySet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;

const FAMILIES: [(&str, Family); 3] = [
    ("content-policies", Family::Content),
    ("access-policies", Family::Access),
    ("resource-policies", Family::Resource),
];

async fn asked<T: Send + 'static>(
    app: &App,
    ask: impl Fn(&mut Tx<'_>, &str) -> Result<T> + Send + 'static,
) -> Result<T> {
    let org = app.organization.clone();
    app.kernel.read_system(move |tx| ask(tx, &org)).await
}

async fn live(app: &App) -> Live {
    asked(app, policies::live).await.unwrap()
}

async fn at(app: &App, sequence: i64) -> Live {
    asked(app, move |tx, org| policies::at_sequence(tx, org, sequence))
        .await
        .unwrap()
}

/// What a set should hold: definitions by family and id.
type Set = BTreeMap<(Family, String), Value>;

fn holds(set: &PolicySet) -> Set {
    let policies = set.policies().iter();
    policies
        .map(|p| ((p.family(), p.id().to_owned()), p.authored().clone()))
        .collect()
}

fn compiled(set: &Set) -> PolicySet {
    PolicySet::new(
        set.iter()
            .map(|((family, _), value)| Arc::new(Definition::read(*family, value).unwrap())),
    )
    .unwrap()
}

struct StoredVersion {
    family: usize,
    revision: i64,
    definition: Value,
    is_deleted: bool,
}

/// A model of the area: policies, and the set of every version.
#[derive(Default)]
struct Model {
    policies: BTreeMap<String, StoredVersion>,
    versions: Vec<Set>,
}

impl Model {
    fn live(&self) -> Set {
        let living = self
            .policies
            .values()
            .filter(|p| !p.is_deleted && p.definition["enabled"] == true);
        living
            .map(|p| {
                let id = p.definition["id"].as_str().unwrap().to_owned();
                ((FAMILIES[p.family].1, id), p.definition.clone())
            })
            .collect()
    }

    fn wrote(&mut self) {
        let live = self.live();
        if self
            .versions
            .last()
            .map_or(!live.is_empty(), |last| *last != live)
        {
            self.versions.push(live);
        }
    }

    /// One random write of an organization, and the same in the model.
    async fn step(&mut self, app: &App, dice: &mut Dice) {
        let family = dice.below(FAMILIES.len());
        let collection = FAMILIES[family].0;
        let id = format!("p{}", dice.below(6));
        let mut wanted = definition(collection, &id, "");
        wanted["enabled"] = (!dice.chance(4)).into();
        wanted["name"] = format!("name {}", dice.below(3)).into();
        let found = self.policies.get_mut(&id);
        match found {
            Some(stored) if !stored.is_deleted && dice.chance(4) => {
                let collection = FAMILIES[stored.family].0;
                let path = format!("/{collection}/{id}?expectedRevision={}", stored.revision);
                assert_eq!(app.delete(&path).await.status.as_u16(), 204);
                stored.is_deleted = true;
            }
            Some(stored) => {
                let collection = FAMILIES[stored.family].0;
                let mut wanted = definition(collection, &id, "");
                wanted["enabled"] = (!dice.chance(4)).into();
                wanted["name"] = format!("name {}", dice.below(3)).into();
                let body = json!({ "definition": wanted, "expectedRevision": if stored.is_deleted { 0 } else { stored.revision } });
                let reply = if stored.is_deleted {
                    app.write("POST", &format!("/{collection}"), body).await
                } else {
                    app.write("PUT", &format!("/{collection}/{id}"), body).await
                };
                stored.revision += 1;
                assert_eq!(reply.ok()["item"]["currentRevision"], stored.revision);
                stored.definition = wanted;
                stored.is_deleted = false;
            }
            None => {
                app.write("POST", &format!("/{collection}"), json!({ "definition": wanted }))
                    .await
                    .ok();
                let stored = StoredVersion {
                    family,
                    revision: 1,
                    definition: wanted,
                    is_deleted: false,
                };
                self.policies.insert(id, stored);
            }
        }
        self.wrote();
    }
}

/// Proves PO-1, PO-2, PO-3.
#[test]
fn every_version_gives_its_set_for_ever() {
    each("policy_versions", |app: Arc<App>| async move {
        let mut dice = Dice::new("policy versions");
        let empty = live(&app).await;
        assert_eq!(
            (empty.sequence, empty.version_id.as_str()),
            (0, "psv_00000000000000000000000000")
        );
        assert_eq!(empty.set.digest(), PolicySet::new([]).unwrap().digest());
        let mut model = Model::default();
        for _ in 0..workload("PROVOST_TEST_CASES", 70, 120) {
            model.step(&app, &mut dice).await;
            let now = live(&app).await;
            assert_eq!(usize::try_from(now.sequence).unwrap(), model.versions.len());
            assert_eq!(holds(&now.set), model.live());
        }
        // More versions than are kept compiled, twice over: most are read back from their rows.
        assert!(model.versions.len() > 40, "{}", model.versions.len());
        let mut listed = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = app.get(&format!("/policies/versions?limit=7{cursor}")).await;
            listed.extend(page.ok()["versions"].as_array().unwrap().clone());
            match page.json["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(listed.len(), model.versions.len());
        for round in 0..2 {
            for (place, expected) in model.versions.iter().enumerate() {
                let sequence = i64::try_from(place).unwrap() + 1;
                let found = at(&app, sequence).await;
                assert_eq!(
                    (found.sequence, holds(&found.set)),
                    (sequence, expected.clone()),
                    "round {round}"
                );
                let shown = &listed[listed.len() - 1 - place];
                assert_eq!(shown["sequence"], sequence);
                assert_eq!(shown["id"], found.version_id);
                assert_eq!(shown["digest"], compiled(expected).digest(), "PO-3");
                assert_eq!(shown["digest"], found.set.digest());
                assert_eq!(shown["policies"], expected.len());
                let one = app.get(&format!("/policies/versions/{}", found.version_id)).await;
                let mut ids: Vec<&String> = expected.keys().map(|(_, id)| id).collect();
                ids.sort();
                assert_eq!(one.ok()["policyIds"], json!(ids));
                let id = found.version_id.clone();
                let by_id = asked(&app, move |tx, org| policies::version(tx, org, &id))
                    .await
                    .unwrap();
                assert_eq!(by_id.unwrap().sequence, sequence);
            }
        }
        let none = asked(&app, |tx, org| policies::version(tx, org, "psv_nothing"))
            .await
            .unwrap();
        assert!(none.is_none());
        let beyond = i64::try_from(model.versions.len()).unwrap() + 1;
        let beyond = asked(&app, move |tx, org| policies::at_sequence(tx, org, beyond)).await;
        assert_eq!(beyond.unwrap_err().code(), Code::NotFound);
        // Another organization has none of it.
        let (organization, admin) = app.other_organization("Umbrella").await;
        let there = app.view_of(organization, admin);
        assert_eq!(live(&there).await.sequence, 0);
    });
}

/// Proves PO-2.
#[test]
fn writes_at_once_leave_no_gap() {
    each("policy_concurrency", |app: Arc<App>| async move {
        let mut tasks = JoinSet::new();
        for worker in 0..8 {
            let app = app.clone();
            tasks.spawn(async move {
                for round in 0..6 {
                    let id = format!("w{worker}");
                    let mut wanted = definition("content-policies", &id, "");
                    wanted["name"] = format!("round {round}").into();
                    let body = json!({ "definition": wanted, "expectedRevision": round });
                    let reply = if round == 0 {
                        app.write("POST", "/content-policies", body).await
                    } else {
                        app.write("PUT", &format!("/content-policies/{id}"), body).await
                    };
                    reply.ok();
                }
                // All at one policy: one of them wins.
                let body =
                    json!({ "definition": definition("content-policies", "one", ""), "expectedRevision": 0 });
                let reply = app.write("POST", "/content-policies", body).await;
                assert!([201, 409].contains(&reply.status.as_u16()), "{}", reply.text());
                usize::from(reply.status.as_u16() == 201)
            });
        }
        let winners: usize = tasks.join_all().await.into_iter().sum();
        assert_eq!(winners, 1);
        let versions = app.get("/policies/versions?limit=100").await;
        let sequences: Vec<i64> = versions.ok()["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v["sequence"].as_i64().unwrap())
            .collect();
        assert_eq!(sequences, (1..=49).rev().collect::<Vec<_>>());
        assert_eq!(live(&app).await.set.policies().len(), 9);
    });
}

/// Proves PO-2.
#[test]
fn what_leaves_the_set_as_it_is_makes_no_version() {
    each("policy_same_set", |app: Arc<App>| async move {
        let sequence = async || live(&app).await.sequence;
        let mut one = definition("content-policies", "one", "");
        one["enabled"] = false.into();
        app.write("POST", "/content-policies", json!({ "definition": one }))
            .await
            .ok();
        one["name"] = "renamed".into();
        let write = async |definition: &Value, revision: i64, source: Value| {
            let body = json!({ "definition": definition, "expectedRevision": revision, "sourceRef": source });
            app.write("PUT", "/content-policies/one", body).await.ok();
        };
        write(&one, 1, Value::Null).await;
        assert_eq!(sequence().await, 0, "a disabled policy decides nothing");
        one["enabled"] = true.into();
        write(&one, 2, Value::Null).await;
        assert_eq!(sequence().await, 1);
        // Where a definition comes from decides nothing; neither does who manages it.
        write(&one, 3, json!({ "tool": "x" })).await;
        let claim = json!({ "expectedRevision": 4, "managerId": "a", "managerInstance": "b" });
        app.write("POST", "/policy-authority/one/claim", claim).await.ok();
        let release = app
            .request("POST", "/policy-authority/one/release")
            .header("x-forge-terraform-manager", "a")
            .header("x-forge-terraform-instance", "b")
            .json(with_trio(json!({ "expectedRevision": 4 }), &fresh_key()));
        assert_eq!(release.send().await.status.as_u16(), 204);
        assert_eq!(sequence().await, 1);
        let before = live(&app).await;
        one["enabled"] = false.into();
        write(&one, 4, Value::Null).await;
        assert_eq!((sequence().await, live(&app).await.set.policies().len()), (2, 0));
        let path = "/content-policies/one?expectedRevision=5";
        assert_eq!(app.delete(path).await.status.as_u16(), 204);
        assert_eq!(sequence().await, 2, "it had left before");
        assert_eq!(at(&app, 1).await.set.digest(), before.set.digest());
        // The history says which versions each revision decided in.
        let history = app.get("/policies/revisions/one?deleted=true").await;
        let spans: Vec<(Value, Value)> = history.ok()["revisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| (r["decidesFrom"].clone(), r["decidesUntil"].clone()))
            .collect();
        let none = (Value::Null, Value::Null);
        let expected = [
            none.clone(),
            none.clone(),
            (json!(1), json!(2)),
            none.clone(),
            none,
        ];
        assert_eq!(
            spans, expected,
            "the third revision decided, and the fourth was the same"
        );
        // One event for each change of the set.
        let events = app.events(0).await;
        let versions: Vec<&Value> = events
            .iter()
            .filter(|(kind, _)| kind == "policy_set.version_created")
            .map(|(_, data)| data)
            .collect();
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0]["versionId"], at(&app, 1).await.version_id);
    });
}

/// PO-6: what cannot be read is never left out.
/// Proves PO-6.
#[test]
fn a_stored_policy_that_does_not_read_stops_every_decision() {
    each("policy_corrupt", |app: Arc<App>| async move {
        app.policy("content-policies").await;
        let good = live(&app).await;
        let id = app.policy("content-policies").await;
        let spoil = |text: &str| {
            let sql = format!("UPDATE policy_revisions SET definition = '{text}' WHERE policy_id = '{id}'");
            let location = app.location();
            std::thread::spawn(move || Conn::open(&location, Access::Write).unwrap().batch(&sql).unwrap())
                .join()
                .unwrap();
        };
        spoil(r#"{"id":"another-engine","name":"a","action":"teleport"}"#);
        let refused = asked(&app, policies::live).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().contains(&id), "{}", refused.message());
        // One that reads and is another one is no better.
        spoil(
            &definition("content-policies", &id, "")
                .to_string()
                .replace("shell", "shelf"),
        );
        let refused = asked(&app, policies::live).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        // What was decided before is as it was.
        let earlier = at(&app, good.sequence).await;
        assert_eq!(earlier.set.digest(), good.set.digest());
    });
}

#[test]
fn candidate_changes_are_bound_and_applied() {
    each("policy_candidates", |app: Arc<App>| async move {
        let kept = app.policy("content-policies").await;
        let replaced = app.policy("content-policies").await;
        let base = live(&app).await;
        let mut other = definition("content-policies", &replaced, "");
        other["name"] = "candidate".into();
        let added = definition("access-policies", "added", "");
        let mut disabled = definition("resource-policies", "disabled", "");
        disabled["enabled"] = false.into();
        let bound = |family, id: &str, definition: Option<&Value>| BoundChange {
            family,
            policy_id: id.to_owned(),
            definition: definition.cloned(),
        };
        let changes = [
            bound(Family::Content, &replaced, Some(&other)),
            bound(Family::Access, "added", Some(&added)),
            bound(Family::Resource, "disabled", Some(&disabled)),
            bound(Family::Content, "never", None),
        ];
        let set = policies::with_changes(&base.set, &changes).unwrap();
        let mut expected = holds(&base.set);
        expected.insert((Family::Content, replaced.clone()), other);
        expected.insert((Family::Access, "added".into()), added);
        assert_eq!(holds(&set), expected);
        assert!(
            Arc::ptr_eq(&set, &policies::with_changes(&base.set, &changes).unwrap()),
            "kept by digest"
        );
        let without = policies::with_changes(&set, &[bound(Family::Content, &kept, None)]).unwrap();
        expected.remove(&(Family::Content, kept));
        assert_eq!(holds(&without), expected);
        let broken = bound(Family::Content, "broken", Some(&json!({ "id": "broken" })));
        assert_eq!(
            policies::with_changes(&base.set, &[broken]).unwrap_err().code(),
            Code::Unavailable
        );
        // A change is kept as JSON with what asked about it.
        let text = serde_json::to_string(&changes).unwrap();
        let read: Vec<BoundChange> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, changes);
        assert_eq!(live(&app).await.sequence, base.sequence, "nothing was written");
    });
}

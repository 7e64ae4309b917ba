//! Credentials: rules of state, readers, resolution, checks (D11.1 to D11.7, D13).

use crate::areas::resources::{credential_body, make_check, make_credential, make_resource};
use crate::support::{App, Dice, each, fresh_key};
use provost_areas_access::resource_credentials::external::{Backend, ExternalManagers, SecretManager};
use provost_areas_access::resource_credentials::{self, CredentialSeeker};
use provost_areas_access::resources::model::ResourceId;
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::jobs::{self, Handler, Work};
use provost_kernel::kernel::Extras;
use provost_server::background;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

fn assigned(users: &[&str], groups: &[&str], accounts: &[&str]) -> Value {
    json!({ "users": users, "groups": groups, "serviceAccounts": accounts })
}

fn with(change: &Value) -> Value {
    let mut body = credential_body();
    for (member, value) in change.as_object().unwrap() {
        body[member] = value.clone();
    }
    body
}

async fn credential(app: &App, resource: &str, change: Value) -> String {
    let path = format!("/resources/{resource}/credentials");
    let made = app.write("POST", &path, with(&change)).await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

/// Runs a function in a unit of work of the first organization.
async fn unit<T: Send + 'static>(
    app: &App,
    run: impl Fn(&mut provost_kernel::OperationContext<'_>) -> provost_kernel::Result<T> + Send + 'static,
) -> provost_kernel::Result<T> {
    let found = Arc::new(Mutex::new(None));
    let sink = found.clone();
    let done = app.kernel.system(app.org(), None, move |ctx| {
        *sink.lock().unwrap() = Some(run(ctx)?);
        Ok(())
    });
    done.await?;
    Ok(found.lock().unwrap().take().unwrap())
}

/// Proves RC-6.
#[test]
fn a_resource_has_one_default_and_the_list_shows_it_first() {
    each("one_default", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let path = format!("/resources/{resource}/credentials");
        let plain = credential(&app, &resource, json!({ "name": "plain" })).await;
        app.advance(1);
        let first = credential(&app, &resource, json!({ "default": true })).await;
        let second = app.write("POST", &path, with(&json!({ "default": true }))).await;
        second.refused(409, "conflict");
        assert!(second.text().contains(&first));
        let put = app
            .write(
                "PUT",
                &format!("{path}/{plain}"),
                with(&json!({ "default": true })),
            )
            .await;
        put.refused(409, "conflict");
        let listed = app.get(&path).await;
        let ids: Vec<&Value> = listed.ok()["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| &c["id"])
            .collect();
        assert_eq!(ids, [&json!(first), &json!(plain)]);
        app.write("PUT", &format!("{path}/{first}"), credential_body())
            .await
            .ok();
        app.write(
            "PUT",
            &format!("{path}/{plain}"),
            with(&json!({ "default": true })),
        )
        .await
        .ok();
    });
}

/// Proves RS-2.
#[test]
fn a_resource_has_500_credentials_at_most() {
    each("five_hundred", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let path = format!("/resources/{resource}/credentials");
        for _ in 0..500 {
            app.write("POST", &path, credential_body()).await.ok();
        }
        app.write("POST", &path, credential_body())
            .await
            .refused(409, "conflict");
        let listed = app.get(&path).await;
        assert_eq!(listed.ok()["items"].as_array().unwrap().len(), 500);
        let refused = app.delete(&format!("/resources/{resource}")).await;
        refused.refused(409, "conflict");
        assert_eq!(refused.json["credentials"], 500);
    });
}

#[test]
fn an_assigned_credential_goes_only_when_that_is_confirmed() {
    each("confirm_assigned", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let (one, _) = app.account("reader", "operator", &[]).await;
        let change = json!({ "assignedTo": assigned(&[], &[], &[&one, &one]) });
        let id = credential(&app, &resource, change).await;
        let path = format!("/resources/{resource}/credentials/{id}");
        let shown = app.get(&path).await;
        assert_eq!(shown.ok()["assignedTo"], assigned(&[], &[], &[&one]));
        let delete = |key: &str| {
            let call = app.request("DELETE", &path).header("idempotency-key", key);
            call.header("x-reason", "a test")
        };
        let refused = delete(&fresh_key()).send().await;
        refused.refused(400, "confirmation_required");
        assert_eq!(refused.json["assignees"], assigned(&[], &[], &[&one]));
        app.get(&path).await.ok();
        let gone = delete(&fresh_key()).header("x-confirm", "true").send().await;
        assert_eq!(gone.status.as_u16(), 204);
        // What nobody has goes without a word.
        let id = credential(&app, &resource, json!({})).await;
        let path = format!("/resources/{resource}/credentials/{id}");
        let call = app
            .request("DELETE", &path)
            .header("idempotency-key", &fresh_key());
        let gone = call.header("x-reason", "a test").send().await;
        assert_eq!(gone.status.as_u16(), 204);
    });
}

/// Proves RC-5.
#[test]
fn an_operator_reads_its_own_credentials_alone() {
    each("operator_reads", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let (one, operator) = app.account("operator", "operator", &[]).await;
        let (two, _) = app.account("another", "operator", &[]).await;
        let mine = credential(
            &app,
            &resource,
            json!({ "assignedTo": assigned(&[], &[], &[&one, &two]) }),
        )
        .await;
        credential(
            &app,
            &resource,
            json!({ "assignedTo": assigned(&[], &[], &[&two]) }),
        )
        .await;
        credential(&app, &resource, json!({ "default": true })).await;
        let path = format!("/resources/{resource}/credentials");
        let listed = app.request("GET", &path).token(&operator).send().await;
        let whole = app.get(&format!("{path}/{mine}")).await;
        assert_eq!(listed.ok()["items"], json!([whole.ok()]), "the complete record");
        let one = app
            .request("GET", &format!("{path}/{mine}"))
            .token(&operator)
            .send()
            .await;
        one.refused(403, "role_forbidden");
    });
}

#[test]
fn a_deleted_subject_is_forgotten_everywhere() {
    each("forgotten", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let (one, _) = app.account("one", "viewer", &["fleet:read"]).await;
        let (two, _) = app.account("two", "viewer", &["fleet:read"]).await;
        let id = credential(
            &app,
            &resource,
            json!({ "assignedTo": assigned(&[], &[], &[&one, &two]) }),
        )
        .await;
        let path = format!("/resources/{resource}/credentials/{id}");
        let before = app.get(&path).await.json;
        let gone = one.clone();
        unit(&app, move |ctx| {
            ctx.announce(&PrincipalEnded {
                kind: SubjectKind::ServiceAccount,
                id: gone.clone(),
                how: Departure::Deleted,
            })
        })
        .await
        .unwrap();
        let after = app.get(&path).await.json;
        assert_eq!(after["assignedTo"], assigned(&[], &[], &[&two]));
        assert!(after["updatedAt"].as_str() > before["updatedAt"].as_str());
    });
}

#[test]
fn a_protocol_changes_only_when_its_credentials_fit() {
    each("protocol_fits", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let id = make_credential(&app, &resource).await;
        let body = json!({ "name": fresh_key(), "protocol": "postgres", "upstreamHost": "db.internal", "upstreamPort": 5432 });
        let path = format!("/resources/{resource}");
        app.write("PUT", &path, body.clone())
            .await
            .refused(409, "conflict");
        app.delete(&format!("{path}/credentials/{id}")).await;
        app.write("PUT", &path, body).await.ok();
        let refused = app
            .write("POST", &format!("{path}/credentials"), credential_body())
            .await;
        refused.refused(422, "invalid_definition");
        assert_eq!(refused.json["errors"][0]["path"], "/kind");
    });
}

/// The order of D11.4 as a reader of it would write it down.
fn naive(
    credentials: &[Value],
    user: Option<&str>,
    account: Option<&str>,
    groups: &[String],
) -> Option<String> {
    let id = |c: &Value| c["id"].as_str().unwrap().to_owned();
    let holds = |c: &Value, member: &str, subject: &str| {
        c["assignedTo"][member]
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s == subject)
    };
    let lowest = |fits: &dyn Fn(&Value) -> bool| credentials.iter().filter(|c| fits(c)).map(id).min();
    lowest(&|c| user.is_some_and(|user| holds(c, "users", user)))
        .or_else(|| lowest(&|c| account.is_some_and(|account| holds(c, "serviceAccounts", account))))
        .or_else(|| lowest(&|c| groups.iter().any(|group| holds(c, "groups", group))))
        .or_else(|| lowest(&|c| c["default"] == true))
}

/// Proves RC-4.
#[test]
fn a_caller_gets_the_credential_that_a_naive_reading_gives() {
    each("resolution", |app: Arc<App>| async move {
        let mut dice = Dice::new("resolution");
        let mut accounts = Vec::new();
        for n in 0..4 {
            accounts.push(
                app.account(&format!("caller {n}"), "viewer", &["fleet:read"])
                    .await
                    .0,
            );
        }
        let mut asked = [0; 2];
        for round in 0..6 {
            let resource = make_resource(&app).await;
            for n in 0..dice.below(8) {
                let some: Vec<&str> = accounts
                    .iter()
                    .filter(|_| dice.chance(4))
                    .map(String::as_str)
                    .collect();
                let change = json!({
                    "name": format!("{n}"), "default": n == 3 && round % 2 == 0,
                    "assignedTo": assigned(&[], &[], &some),
                });
                credential(&app, &resource, change).await;
            }
            // Users and groups are assigned in the store: what they are is the directory's.
            let listed = app.get(&format!("/resources/{resource}/credentials")).await.json;
            let ids: Vec<String> = listed["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c["id"].as_str().unwrap().to_owned())
                .collect();
            for id in &ids {
                for (kind, names) in [("user", ["usr_a", "usr_b"]), ("group", ["grp_a", "grp_b"])] {
                    for name in names.into_iter().filter(|_| dice.chance(4)) {
                        let (id, resource) = (id.clone(), resource.clone());
                        unit(&app, move |ctx| {
                            let org = ctx.org();
                            ctx.queue(
                                &ASSIGN,
                                provost_kernel::params![org, id.as_str(), kind, name, resource.as_str()],
                            )
                        })
                        .await
                        .unwrap();
                    }
                }
            }
            let listed = app.get(&format!("/resources/{resource}/credentials")).await.json;
            let credentials = listed["items"].as_array().unwrap();
            for _ in 0..40 {
                let asking = CredentialSeeker {
                    user: [None, Some("usr_a"), Some("usr_b"), Some("usr_c")][dice.below(4)]
                        .map(str::to_owned),
                    service_account: Some(dice.pick(&accounts).clone()).filter(|_| dice.chance(2)),
                    groups: ["grp_a", "grp_b", "grp_c"]
                        .into_iter()
                        .filter(|_| dice.chance(3))
                        .map(str::to_owned)
                        .collect(),
                };
                let expected = naive(
                    credentials,
                    asking.user.as_deref(),
                    asking.service_account.as_deref(),
                    &asking.groups,
                );
                asked[usize::from(expected.is_some())] += 1;
                let (id, shown) = (ResourceId::from_text(&resource), format!("{asking:?}"));
                let found = unit(&app, move |ctx| {
                    resource_credentials::credential_for(ctx, &asking, &id)
                })
                .await;
                assert_eq!(
                    found.unwrap().map(|id| id.as_str().to_owned()),
                    expected,
                    "{shown}"
                );
            }
        }
        assert!(asked.iter().all(|count| *count > 10), "{asked:?}");
    });
}

provost_kernel::statements! {
    /// Assigns somebody whom no directory knows.
    ASSIGN = "INSERT INTO resource_credential_assignments (organization_id, credential_id, subject_kind, subject_id, resource_id) VALUES (?1, ?2, ?3, ?4, ?5)";
    /// How many checks there are.
    CHECKS = unscoped("a test") "SELECT COUNT(*) FROM resource_credential_checks";
}

async fn run_jobs(app: &App) {
    let handlers = Arc::new(app.kernel.areas().jobs());
    while jobs::run_due(&app.kernel, &handlers).await.unwrap() > 0 {}
}

async fn checked(app: &App, resource: &str, credential: &str) -> (String, String) {
    let check = make_check(app, resource, credential).await;
    let path = format!("/resources/{resource}/credentials/{credential}/checks/{check}");
    let pending = app.get(&path).await;
    assert_eq!(
        (&pending.ok()["state"], pending.header("retry-after")),
        (&json!("pending"), "1")
    );
    run_jobs(app).await;
    let done = app.get(&path).await;
    assert!(done.ok()["finishedAt"].is_string(), "{}", done.text());
    let text = |member: &str| done.json[member].as_str().unwrap_or("").to_owned();
    (text("state"), text("reason"))
}

#[test]
fn a_check_proves_that_a_secret_can_be_had_and_shows_nothing_of_it() {
    each("checks", |app: Arc<App>| async move {
        let root = app.keys_dir.with_extension("secrets");
        std::fs::create_dir_all(root.join("team")).unwrap();
        std::fs::write(root.join("team/api"), "a secret in a file\n").unwrap();
        let declared = SecretManager {
            name: "files".into(),
            backend: Backend::File,
            prefixes: BTreeMap::from([(app.organization.clone(), root.to_str().unwrap().to_owned())]),
        };
        let managers = ExternalManagers::new(vec![declared]);
        let here = app.restarted(Extras::default().with(managers)).unwrap();
        let resource = make_resource(&here).await;
        let stored = make_credential(&here, &resource).await;
        assert_eq!(
            checked(&here, &resource, &stored).await,
            ("succeeded".into(), String::new())
        );
        let external = |path: &str| {
            json!({
                "name": "external", "kind": "bearer_token", "managementMode": "external",
                "managerInstance": "files", "externalPath": path,
            })
        };
        let base = format!("/resources/{resource}/credentials");
        let made = here.write("POST", &base, external("team/api")).await;
        assert_eq!(
            (
                &made.ok()["managementMode"],
                &made.json["managerId"],
                &made.json["managerInstance"]
            ),
            (&json!("external"), &json!("file"), &json!("files"))
        );
        let id = made.json["id"].as_str().unwrap().to_owned();
        assert_eq!(
            checked(&here, &resource, &id).await,
            ("succeeded".into(), String::new())
        );
        let gone = here.write("POST", &base, external("team/none")).await;
        let gone = gone.ok()["id"].as_str().unwrap().to_owned();
        assert_eq!(
            checked(&here, &resource, &gone).await,
            ("failed".into(), "not_found".into())
        );
        // The server without the declaration says so, and takes no such credential.
        assert_eq!(
            checked(&app, &resource, &id).await,
            ("failed".into(), "not_configured".into())
        );
        let refused = app.write("POST", &base, external("team/api")).await;
        refused.refused(422, "invalid_definition");
        assert_eq!(refused.json["errors"][0]["path"], "/managerInstance");
        let mut with_secret = external("team/api");
        with_secret["secret"] = "x".into();
        here.write("POST", &base, with_secret)
            .await
            .refused(409, "conflict");
        here.write("POST", &base, external("../x"))
            .await
            .refused(400, "invalid_request");
        // It comes back with a secret of its own, and goes again.
        here.write("PUT", &format!("{base}/{id}"), credential_body())
            .await
            .ok();
        let path = format!("{base}/{id}");
        let mut none = credential_body();
        none.as_object_mut().unwrap().remove("secret");
        here.write("PUT", &path, none.clone()).await.ok();
        here.write("PUT", &path, external("team/api")).await.ok();
        here.write("PUT", &path, none)
            .await
            .refused(422, "invalid_definition");
        here.kernel.stop().await;
        std::fs::remove_dir_all(&root).unwrap();
    });
}

#[test]
fn a_check_outlives_the_server_that_took_it_and_is_gone_after_a_week() {
    each("check_crash", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let id = make_credential(&app, &resource).await;
        let check = make_check(&app, &resource, &id).await;
        let path = format!("/resources/{resource}/credentials/{id}/checks/{check}");
        // A worker that takes the job, asks, and dies.
        let dying = vec![Handler {
            kind: "resource_credential.verify",
            action: "resource_credential.verified",
            work: Work::Outside {
                ask: Box::new(|_, _, _| Box::pin(std::future::pending())),
                settle: |_, _, _| Ok(()),
            },
        }];
        let (kernel, dying) = (app.kernel.clone(), Arc::new(dying));
        let taken = tokio::time::timeout(std::time::Duration::from_millis(300), async move {
            jobs::run_due(&kernel, &dying).await
        });
        assert!(taken.await.is_err(), "it never answers");
        run_jobs(&app).await;
        assert_eq!(
            app.get(&path).await.ok()["state"],
            "pending",
            "the lease is the dead worker's"
        );
        app.advance(61);
        run_jobs(&app).await;
        assert_eq!(app.get(&path).await.ok()["state"], "succeeded");
        app.advance(7 * 86_400 - 62);
        app.get(&path).await.ok();
        app.advance(2);
        app.get(&path).await.refused(404, "not_found");
        background::retain(&app.kernel).await.unwrap();
        let left = app
            .kernel
            .read_system(|tx| tx.query_opt(&CHECKS, &[], |row| row.get::<i64>(0)));
        assert_eq!(left.await.unwrap(), Some(0));
    });
}

/// Proves RC-8.
#[test]
fn rotated_at_follows_the_secret_and_nothing_else() {
    each("rotated_at", |app: Arc<App>| async move {
        let root = app.keys_dir.with_extension("rotated");
        std::fs::create_dir_all(root.join("team")).unwrap();
        let declared = |name: &str| SecretManager {
            name: name.into(),
            backend: Backend::File,
            prefixes: BTreeMap::from([(app.organization.clone(), root.to_str().unwrap().to_owned())]),
        };
        let managers = ExternalManagers::new(vec![declared("files"), declared("more")]);
        let here = app.restarted(Extras::default().with(managers)).unwrap();
        let resource = make_resource(&here).await;
        let path = format!(
            "/resources/{resource}/credentials/{}",
            make_credential(&here, &resource).await
        );
        let from = i64::try_from(here.events(0).await.len()).unwrap();
        let put = async |body: Value| {
            here.advance(1);
            let shown = here.write("PUT", &path, body).await;
            let rotated = shown.ok().get("rotatedAt").cloned();
            (rotated.clone(), rotated == Some(json!(here.now().to_rfc3339())))
        };
        let without = |mut body: Value| {
            body.as_object_mut().unwrap().remove("secret");
            body
        };
        let external = |instance: &str, path: &str| {
            json!({
                "name": "external", "kind": "bearer_token", "managementMode": "external",
                "managerInstance": instance, "externalPath": path,
            })
        };
        // A name is no secret.
        assert_eq!(put(without(with(&json!({ "name": "two" })))).await, (None, false));
        // The same secret again is a rotation: nothing compares the two.
        assert!(put(with(&json!({ "name": "two" }))).await.1);
        let kept = put(without(with(&json!({ "name": "three" })))).await;
        assert!(kept.0.is_some() && !kept.1, "{kept:?}");
        // Elsewhere, and each time elsewhere again.
        assert!(put(external("files", "team/a")).await.1);
        assert!(put(external("files", "team/b")).await.1);
        assert!(put(external("more", "team/b")).await.1);
        let mut renamed = external("more", "team/b");
        renamed["name"] = "renamed".into();
        let kept = put(renamed).await;
        assert!(kept.0.is_some() && !kept.1, "{kept:?}");
        // Back here, and to a kind without a secret: then there is none that could be old.
        assert!(put(credential_body()).await.1);
        let exchange = json!({
            "name": "one", "kind": "oauth2_token_exchange",
            "authentication": { "tokenEndpoint": "https://issuer.example/token" },
        });
        assert_eq!(put(exchange).await, (None, false));
        assert!(put(credential_body()).await.1);
        let events = here.events(from).await;
        let rotated = events.iter().filter(|(kind, _)| kind == "credential.rotated");
        assert_eq!(rotated.count(), 6);
        here.kernel.stop().await;
        std::fs::remove_dir_all(&root).unwrap();
    });
}

#[test]
fn two_credentials_of_a_resource_may_have_one_name() {
    each("same_name", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let (one, two) = (
            make_credential(&app, &resource).await,
            make_credential(&app, &resource).await,
        );
        let listed = app.get(&format!("/resources/{resource}/credentials")).await;
        let items = listed.ok()["items"].as_array().unwrap().clone();
        let names: Vec<&str> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
        assert_eq!((one == two, names), (false, vec!["one", "one"]));
    });
}

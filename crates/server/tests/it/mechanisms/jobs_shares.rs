//! What one organization's jobs take of the others' (JB-2), with a secret manager that takes connections and never answers.

#![expect(clippy::disallowed_methods, reason = "tasks of a test beside the server")]

use crate::areas::resources::{make_check, make_credential, make_resource};
use crate::support::{App, each};
use provost_kernel::auth::OrganizationId;
use provost_kernel::jobs::{self, Handler, NewJob, Work};
use provost_kernel::kernel::Extras;
use provost_server::config::Config;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How many checks wait for the secret manager.
const MANY: usize = 300;

/// Listens, counts who connects, and says nothing.
async fn silence() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, count) = (
        listener.local_addr().unwrap().port(),
        Arc::new(AtomicUsize::new(0)),
    );
    let known = count.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            known.fetch_add(1, Ordering::SeqCst);
            held.push(stream);
        }
    });
    (port, count)
}

/// Starts one more server on the store, which knows a vault at this port.
fn with_vault(app: &App, port: u16) -> App {
    let token = app.keys_dir.with_extension("vault-token");
    std::fs::write(&token, "s.token").unwrap();
    let declared = format!(
        "[[external_managers]]\nname = \"corp\"\nkind = \"vault\"\naddress = \"http://127.0.0.1:{port}\"\n\
         token_file = \"{}\"\nallow_private_address = true\n[external_managers.organizations]\n{} = \"provost\"\n",
        token.display(),
        app.organization
    );
    let config: Config = toml::from_str(&declared).unwrap();
    let managers = config.external_managers().unwrap();
    app.restarted(Extras::default().with(managers)).unwrap()
}

async fn make_external(app: &App, resource: &str, number: usize) -> String {
    let body = json!({
        "name": format!("external {number}"), "kind": "bearer_token", "managementMode": "external",
        "managerInstance": "corp", "externalPath": format!("team/{number}"),
    });
    let made = app
        .write("POST", &format!("/resources/{resource}/credentials"), body)
        .await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

/// Proves JB-2.
#[test]
fn checks_of_a_vault_that_hangs_hold_up_nobody_else() {
    each("jobs_shares", |app: Arc<App>| async move {
        let (port, connected) = silence().await;
        let server = with_vault(&app, port);
        let resource = make_resource(&server).await;
        let mut waiting = Vec::new();
        for number in 0..MANY {
            waiting.push(make_external(&server, &resource, number).await);
        }
        server.advance(1);
        for credential in &waiting {
            make_check(&server, &resource, credential).await;
        }
        let (organization, token) = server.other_organization("Umbrella").await;
        let neighbour = server.view_of(organization, token);
        let theirs = make_resource(&neighbour).await;
        let credential = make_credential(&neighbour, &theirs).await;
        let (kernel, stop) = (server.kernel.clone(), CancellationToken::new());
        let handlers = Arc::new(app.kernel.areas().jobs());
        let worker = tokio::spawn({
            let stop = stop.clone();
            async move { jobs::serve(&kernel, &handlers, stop).await }
        });
        // The worker has its hands full by now.
        let began = Instant::now();
        while connected.load(Ordering::SeqCst) < 4 {
            assert!(began.elapsed() < Duration::from_secs(20), "nobody asks the vault");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for _ in 0..3 {
            let began = Instant::now();
            let check = make_check(&neighbour, &theirs, &credential).await;
            let path = format!("/resources/{theirs}/credentials/{credential}/checks/{check}");
            while neighbour.get(&path).await.ok()["state"] == "pending" {
                assert!(began.elapsed() < Duration::from_secs(2), "the neighbour waits");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(neighbour.get(&path).await.ok()["state"], "succeeded");
        }
        assert_eq!(
            connected.load(Ordering::SeqCst),
            4,
            "no more of one organization and kind at a time"
        );
        worker.abort();
        stop.cancel();
        server.kernel.stop().await;
    });
}

/// Proves RC-9.
#[test]
fn a_credential_has_one_open_check() {
    each("one_open_check", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let credential = make_credential(&app, &resource).await;
        let other = make_credential(&app, &resource).await;
        app.advance(1);
        let first = make_check(&app, &resource, &credential).await;
        for _ in 0..3 {
            assert_eq!(make_check(&app, &resource, &credential).await, first);
        }
        assert_ne!(make_check(&app, &resource, &other).await, first);
        // What has changed since is looked at anew.
        let path = format!("/resources/{resource}/credentials/{credential}");
        let body = crate::areas::resources::credential_body();
        app.write("PUT", &path, body).await.ok();
        app.advance(1);
        let second = make_check(&app, &resource, &credential).await;
        assert_ne!(second, first);
        assert_eq!(make_check(&app, &resource, &credential).await, second);
        let handlers = Arc::new(app.kernel.areas().jobs());
        assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), 3);
        assert_ne!(
            make_check(&app, &resource, &credential).await,
            second,
            "it has ended"
        );
        // A check that nobody works on any more is no reason to wait.
        let stale = make_check(&app, &resource, &credential).await;
        app.advance(3_601);
        assert_ne!(make_check(&app, &resource, &credential).await, stale);
    });
}

/// Proves JB-2.
#[test]
fn jobs_take_turns_and_no_more_than_their_share() {
    each("jobs_turns", |app: Arc<App>| async move {
        let handlers = Arc::new(vec![
            Handler {
                kind: "inside",
                action: "test.job",
                work: Work::Inside(|_, _| Ok(())),
            },
            Handler {
                kind: "outside",
                action: "test.job",
                work: Work::Outside {
                    ask: Box::new(|_, _, _| Box::pin(async { Ok(Value::Null) })),
                    settle: |_, _, _| Ok(()),
                },
            },
        ]);
        let (other, _) = app.other_organization("Umbrella").await;
        let other = OrganizationId::parse(&other).unwrap();
        for (organization, kind, many) in [
            (app.org(), "inside", 6),
            (app.org(), "outside", 5),
            (other.clone(), "inside", 1),
            (other, "outside", 1),
        ] {
            let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
                for _ in 0..many {
                    ctx.enqueue(NewJob {
                        kind,
                        payload: Value::Null,
                        run_at: ctx.now(),
                    });
                }
                Ok(())
            };
            app.kernel.system(organization, None, run).await.unwrap();
        }
        // Four of each kind of the one, everything of the other; then what is left.
        for expected in [10, 3, 0] {
            assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), expected);
        }
    });
}

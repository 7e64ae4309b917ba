//! Keys of organizations: re-wrapping, removal of old sealing keys, crypto-shredding (D11.8, RC-2, RC-3).

use crate::areas::resources::{credential_body, make_check, make_resource};
use crate::support::{App, each};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::jobs;
use provost_kernel::kernel::Extras;
use provost_kernel::keys::Keys;
use provost_server::areas::resource_credentials::model::CredentialId;
use provost_server::areas::resource_credentials::{self, secrets};
use provost_server::background;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

provost_kernel::statements! {
    /// The versions of the key of an organization and their sealing keys.
    VERSIONS = "SELECT version, sealing_key_id FROM organization_keys WHERE organization_id = ?1 ORDER BY version";
    /// How many secrets each version wraps.
    WRAPPED = "SELECT organization_key_version, COUNT(*) FROM resource_credential_secrets WHERE organization_id = ?1 GROUP BY organization_key_version ORDER BY 1";
    /// Ends everything that an organization keeps.
    SHRED = "DELETE FROM organization_keys WHERE organization_id = ?1";
    /// Moves the ciphertexts of one secret to another's row.
    SWAP = "UPDATE resource_credential_secrets SET wrapped_key = (SELECT s.wrapped_key FROM resource_credential_secrets s WHERE s.organization_id = ?1 AND s.credential_id = ?3), ciphertext = (SELECT s.ciphertext FROM resource_credential_secrets s WHERE s.organization_id = ?1 AND s.credential_id = ?3) WHERE organization_id = ?1 AND credential_id = ?2";
}

/// Opens a secret as the rest of the program does.
async fn open(app: &App, id: &str) -> provost_kernel::Result<Option<String>> {
    let id = CredentialId::from_text(id);
    let found = Arc::new(Mutex::new(None));
    let sink = found.clone();
    app.kernel
        .system(app.org(), None, move |cx| {
            let secret = resource_credentials::open_secret(cx, &id)?;
            let text = secret.map(|secret| String::from_utf8(secret.expose().clone()).unwrap());
            *sink.lock().unwrap() = text;
            Ok(())
        })
        .await?;
    Ok(found.lock().unwrap().take())
}

async fn versions(app: &App) -> Vec<(i64, String)> {
    let org = app.organization.clone();
    let read = app.kernel.read_system(move |tx| {
        tx.query(&VERSIONS, provost_kernel::params![org.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    });
    read.await.unwrap()
}

async fn wrapped(app: &App) -> Vec<(i64, i64)> {
    let org = app.organization.clone();
    let read = app.kernel.read_system(move |tx| {
        tx.query(&WRAPPED, provost_kernel::params![org.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    });
    read.await.unwrap()
}

async fn make(app: &App, resource: &str, secret: &str) -> String {
    let mut body = credential_body();
    body["secret"] = secret.into();
    let made = app
        .write("POST", &format!("/resources/{resource}/credentials"), body)
        .await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_rewrap_that_is_killed_between_any_steps_loses_nothing() {
    each("rewrap", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let mut kept = BTreeMap::new();
        for n in 0..230 {
            let secret = format!("secret number {n}");
            kept.insert(make(&app, &resource, &secret).await, secret);
        }
        assert_eq!(versions(&app).await, [(1, "sealing-1".to_owned())]);
        assert_eq!(
            secrets::rewrap(&app.kernel).await.unwrap(),
            0,
            "nothing is to be done"
        );
        Keys::rotate(&app.keys_dir, "sealing", app.now(), &SystemEntropy).unwrap();
        // A server that was started before the rotation has nothing to do either.
        assert_eq!(secrets::rewrap(&app.kernel).await.unwrap(), 0);
        let mut seen = Vec::new();
        for step in 0.. {
            // Each step is done by a server of its own, which ends behind it: whatever it remembered is gone.
            let server = app.restarted(Extras::default()).unwrap();
            let is_done = secrets::step(&server.kernel, &server.org()).await.unwrap();
            seen.push(wrapped(&server).await);
            for (id, secret) in kept.iter().step_by(7) {
                assert_eq!(
                    open(&server, id).await.unwrap().as_ref(),
                    Some(secret),
                    "after step {step}"
                );
            }
            // A rotation in between is not lost, and takes the newest key.
            let id = kept.keys().nth(step * 3).unwrap().clone();
            let secret = format!("rotated in step {step}");
            let mut body = credential_body();
            body["secret"] = secret.as_str().into();
            server
                .write("PUT", &format!("/resources/{resource}/credentials/{id}"), body)
                .await
                .ok();
            kept.insert(id, secret);
            server.kernel.stop().await;
            if is_done {
                break;
            }
        }
        // 230 in chunks of 100; what is rotated in between is not behind any more.
        assert_eq!(seen.len(), 5, "{seen:?}");
        assert_eq!(seen[0], [(1, 230)]);
        assert_eq!(seen[1], [(1, 129), (2, 101)]);
        assert_eq!(seen[4], [(2, 230)]);
        assert_eq!(versions(&app).await, [(2, "sealing-2".to_owned())]);
        let server = app.restarted(Extras::default()).unwrap();
        for (id, secret) in &kept {
            assert_eq!(open(&server, id).await.unwrap().as_ref(), Some(secret));
        }
        // The server without the new key leaves the moved organization alone, and says that it cannot serve it.
        assert_eq!(secrets::rewrap(&app.kernel).await.unwrap(), 0);
        assert_eq!(versions(&app).await.len(), 1);
        let refused = open(&app, kept.keys().next().unwrap()).await.unwrap_err();
        assert_eq!(refused.code().status(), 503);
        let actions: Vec<String> = app
            .entries(&app.organization, 0)
            .await
            .iter()
            .map(|e| e["action"].as_str().unwrap().to_owned())
            .filter(|action| action.starts_with("organization_key"))
            .collect();
        assert_eq!(actions, ["organization_key.created", "organization_key.retired"]);
        server.kernel.stop().await;
    });
}

#[test]
fn an_old_sealing_key_can_go_when_nothing_needs_it() {
    each("old_sealing_key", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let id = make(&app, &resource, "hunter2").await;
        let (other, admin) = app.other_organization("Umbrella").await;
        let there = app.view_of(other.clone(), admin);
        let foreign = make_resource(&there).await;
        make(&there, &foreign, "theirs").await;
        Keys::rotate(&app.keys_dir, "sealing", app.now(), &SystemEntropy).unwrap();
        let old = app.keys_dir.join("sealing-1.key");
        let aside = app.keys_dir.with_extension("aside");
        std::fs::rename(&old, &aside).unwrap();
        let refused = app.restarted(Extras::default()).err().unwrap();
        assert!(refused.message().contains("sealing/sealing-1"), "{refused}");
        std::fs::rename(&aside, &old).unwrap();
        let server = app.restarted(Extras::default()).unwrap();
        // One organization of two is not enough.
        while !secrets::step(&server.kernel, &server.org()).await.unwrap() {}
        std::fs::rename(&old, &aside).unwrap();
        assert!(app.restarted(Extras::default()).is_err());
        std::fs::rename(&aside, &old).unwrap();
        assert!(secrets::rewrap(&server.kernel).await.unwrap() > 0);
        server.kernel.stop().await;
        std::fs::remove_file(&old).unwrap();
        for _ in 0..2 {
            let server = app.restarted(Extras::default()).unwrap();
            assert_eq!(open(&server, &id).await.unwrap().as_deref(), Some("hunter2"));
            server.kernel.stop().await;
        }
        // Another key in its place is not taken for it.
        let other_keys = app.keys_dir.with_extension("other");
        drop(Keys::create(&other_keys, app.now(), &SystemEntropy).unwrap());
        std::fs::copy(
            other_keys.join("sealing-1.key"),
            app.keys_dir.join("sealing-2.key"),
        )
        .unwrap();
        assert!(app.restarted(Extras::default()).is_err());
        std::fs::remove_dir_all(&other_keys).unwrap();
    });
}

#[test]
fn without_its_keys_an_organization_has_no_secrets() {
    each("shred", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let id = make(&app, &resource, "hunter2").await;
        app.kernel
            .system(app.org(), None, |cx| {
                let org = cx.org();
                cx.queue(&SHRED, provost_kernel::params![org])
            })
            .await
            .unwrap();
        assert_eq!(open(&app, &id).await.unwrap_err().code().status(), 503);
        let check = make_check(&app, &resource, &id).await;
        jobs::run_due(&app.kernel, &Arc::new(background::handlers()))
            .await
            .unwrap();
        let path = format!("/resources/{resource}/credentials");
        let shown = app.get(&format!("{path}/{id}/checks/{check}")).await;
        assert_eq!(
            (&shown.ok()["state"], &shown.json["reason"]),
            (&json!("failed"), &json!("not_unsealed"))
        );
        assert_eq!(app.get(&path).await.ok()["items"].as_array().unwrap().len(), 1);
        let new = make(&app, &resource, "new").await;
        assert_eq!(open(&app, &new).await.unwrap().as_deref(), Some("new"));
        // The new key is no key to the old secret.
        assert!(open(&app, &id).await.is_err());
    });
}

#[test]
fn a_ciphertext_opens_in_no_other_row() {
    each("swap", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let (one, two) = (
            make(&app, &resource, "one").await,
            make(&app, &resource, "two").await,
        );
        let (to, from) = (one.clone(), two.clone());
        app.kernel
            .system(app.org(), None, move |cx| {
                let org = cx.org();
                cx.queue(&SWAP, provost_kernel::params![org, to.as_str(), from.as_str()])
            })
            .await
            .unwrap();
        assert_eq!(open(&app, &one).await.unwrap_err().code().status(), 500);
        assert_eq!(open(&app, &two).await.unwrap().as_deref(), Some("two"));
    });
}

#[test]
fn a_use_is_noted_to_the_minute() {
    each("last_use", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let id = make(&app, &resource, "hunter2").await;
        let path = format!("/resources/{resource}/credentials/{id}");
        assert!(app.get(&path).await.ok().get("lastUsedAt").is_none());
        let mut expected = Vec::new();
        for (wait, is_noted) in [(0, true), (59, false), (1, true), (60, true), (30, false)] {
            app.advance(wait);
            open(&app, &id).await.unwrap();
            if is_noted {
                expected.push(app.now().to_string());
            }
            let shown = app.get(&path).await;
            assert_eq!(
                shown.ok()["lastUsedAt"].as_str(),
                expected.last().map(String::as_str)
            );
        }
        let before = app.get(&path).await.json;
        app.write("PUT", &path, credential_body()).await.ok();
        let after = app.get(&path).await.json;
        assert_eq!(before["lastUsedAt"], after["lastUsedAt"], "a change is no use");
    });
}

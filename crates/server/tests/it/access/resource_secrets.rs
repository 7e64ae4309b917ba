//! Keys of organizations: re-wrapping, removal of old sealing keys, crypto-shredding (D11.8, RC-2, RC-3).

use crate::areas::resources::{credential_body, make_check, make_resource};
use crate::support::{App, each, number, workload};
use crate::torment::run;
use provost_areas_access::resource_credentials::model::CredentialId;
use provost_areas_access::resource_credentials::{self, secrets};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::jobs;
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::keys::Keys;
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
    /// The ciphertexts of a secret.
    CIPHERTEXTS = "SELECT wrapped_key, ciphertext FROM resource_credential_secrets WHERE organization_id = ?1 AND credential_id = ?2";
    /// Puts ciphertexts into the row of a secret.
    PLACE = "UPDATE resource_credential_secrets SET wrapped_key = ?3, ciphertext = ?4 WHERE organization_id = ?1 AND credential_id = ?2";
}

/// Opens a secret as the rest of the program does.
async fn open(app: &App, id: &str) -> provost_kernel::Result<Option<String>> {
    let id = CredentialId::from_text(id);
    let found = Arc::new(Mutex::new(None));
    let sink = found.clone();
    app.kernel
        .system(app.org(), None, move |ctx| {
            let secret = resource_credentials::open_secret(ctx, &id)?;
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

/// Proves RC-3.
#[test]
fn a_rewrap_that_is_killed_between_any_steps_loses_nothing() {
    run::each("rewrap", &unlimited(), |app: Arc<App>| async move {
        let every = usize::try_from(workload("PROVOST_TEST_SECRET_STEP", 23, 7)).unwrap();
        let mut opened = 0;
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
            opened = 0;
            for (id, secret) in kept.iter().step_by(every) {
                assert_eq!(
                    open(&server, id).await.unwrap().as_ref(),
                    Some(secret),
                    "after step {step}"
                );
                opened += 1;
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
        // The server that was started before the rotation leaves the moved organization alone, and opens what it holds.
        assert_eq!(secrets::rewrap(&app.kernel).await.unwrap(), 0);
        assert_eq!(versions(&app).await, [(2, "sealing-2".to_owned())]);
        let (id, secret) = kept.first_key_value().unwrap();
        assert_eq!(open(&app, id).await.unwrap().as_ref(), Some(secret));
        let actions: Vec<String> = app
            .entries(&app.organization, 0)
            .await
            .iter()
            .map(|e| e["action"].as_str().unwrap().to_owned())
            .filter(|action| action.starts_with("organization_key"))
            .collect();
        assert_eq!(actions, ["organization_key.created", "organization_key.retired"]);
        server.kernel.stop().await;
        json!({ "secrets": kept.len(), "steps": seen.len(), "opened": opened })
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
            .system(app.org(), None, |ctx| {
                let org = ctx.org();
                ctx.queue(&SHRED, provost_kernel::params![org])
            })
            .await
            .unwrap();
        assert_eq!(open(&app, &id).await.unwrap_err().code().status(), 503);
        let check = make_check(&app, &resource, &id).await;
        jobs::run_due(&app.kernel, &Arc::new(app.kernel.areas().jobs()))
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

fn unlimited() -> Settings {
    Settings {
        rate_limits: false,
        ..Settings::default()
    }
}

/// A data key under the organization's key, and the secret under the data key.
type Ciphertexts = (Vec<u8>, Vec<u8>);

/// A secret in its row.
struct Row<'a> {
    /// The application as its organization sees it.
    app: &'a App,
    resource: String,
    id: String,
    secret: String,
    ciphertexts: Ciphertexts,
}

impl<'a> Row<'a> {
    async fn make(app: &'a App, resource: &str, secret: String) -> Self {
        let id = make(app, resource, &secret).await;
        let ciphertexts = ciphertexts(app, &id).await;
        Self {
            app,
            resource: resource.to_owned(),
            id,
            secret,
            ciphertexts,
        }
    }

    async fn place(&self, (wrapped, ciphertext): Ciphertexts) {
        let id = self.id.clone();
        let placed = self.app.kernel.system(self.app.org(), None, move |ctx| {
            let org = ctx.org();
            let row = provost_kernel::params![org, id.as_str(), wrapped.as_slice(), ciphertext.as_slice()];
            ctx.queue(&PLACE, row)
        });
        placed.await.unwrap();
    }

    /// Asserts that ciphertexts in the place of its own do not open.
    async fn refuses(&self, ciphertexts: Ciphertexts) {
        self.place(ciphertexts).await;
        let refused = open(self.app, &self.id).await.unwrap_err();
        assert_eq!(refused.code().status(), 500, "{}", self.secret);
    }

    async fn opens(&self) {
        assert_eq!(
            open(self.app, &self.id).await.unwrap().as_ref(),
            Some(&self.secret)
        );
    }

    async fn rotate(&mut self) {
        self.secret = format!("{} rotated", self.secret);
        let mut body = credential_body();
        body["secret"] = self.secret.as_str().into();
        let path = format!("/resources/{}/credentials/{}", self.resource, self.id);
        self.app.write("PUT", &path, body).await.ok();
        self.ciphertexts = ciphertexts(self.app, &self.id).await;
    }
}

async fn ciphertexts(app: &App, id: &str) -> Ciphertexts {
    let (org, id) = (app.organization.clone(), id.to_owned());
    let read = app.kernel.read_system(move |tx| {
        let row = provost_kernel::params![org.as_str(), id.as_str()];
        tx.query_opt(&CIPHERTEXTS, row, |row| Ok((row.get(0)?, row.get(1)?)))
    });
    read.await.unwrap().unwrap()
}

/// Proves RC-2.
#[test]
fn a_ciphertext_opens_in_no_other_row() {
    run::each("swap", &unlimited(), |app: Arc<App>| async move {
        let (other, admin) = app.other_organization("Umbrella").await;
        let there = app.view_of(other, admin);
        // Two resources of one organization, and one of another.
        let places = [
            (&*app, make_resource(&app).await),
            (&*app, make_resource(&app).await),
            (&there, make_resource(&there).await),
        ];
        let mut rows = Vec::new();
        for n in 0..number("PROVOST_TEST_SECRETS", 4) {
            let (app, resource) = &places[usize::try_from(n).unwrap() % places.len()];
            rows.push(Row::make(app, resource, format!("secret number {n}")).await);
        }
        let mut moves = 0;
        for to in &rows {
            let (own_key, own_text) = to.ciphertexts.clone();
            for from in rows.iter().filter(|from| from.id != to.id) {
                let (key, text) = from.ciphertexts.clone();
                to.refuses((key.clone(), text.clone())).await;
                to.refuses((key, own_text.clone())).await;
                to.refuses((own_key.clone(), text)).await;
                moves += 3;
            }
            to.place((own_key, own_text)).await;
            to.opens().await;
        }
        for row in &mut rows {
            let before = row.ciphertexts.clone();
            row.rotate().await;
            let (key, text) = row.ciphertexts.clone();
            row.refuses(before.clone()).await;
            row.refuses((before.0, text.clone())).await;
            row.refuses((key.clone(), before.1)).await;
            moves += 3;
            row.place((key, text)).await;
        }
        for row in &rows {
            row.opens().await;
        }
        json!({ "secrets": rows.len(), "moves": moves })
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

//! What a machine gets is signed, whole, and the last release (D8.2, D12.8, D12.9).

use super::{PROFILES, current, perform, profile, publish, publish_all};
use crate::support::{App, each};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_areas_platform::store;
use provost_kernel::auth::OrganizationId;
use provost_kernel::dsse::{self, Envelope, PublicKey, SignedKind};
use serde_json::{Value, json};
use std::sync::Arc;

async fn trusted(app: &App) -> Vec<PublicKey> {
    let call = app
        .request("GET", "")
        .anonymous()
        .at("/.well-known/provost-keys.json");
    let reply = call.send().await;
    let keys = reply.json["keys"].as_array().unwrap();
    let signing = keys.iter().filter(|key| key["use"] == "signing");
    let read = signing.map(|key| PublicKey {
        id: key["id"].as_str().unwrap_or_default().to_owned(),
        key: STANDARD
            .decode(key["key"].as_str().unwrap())
            .unwrap()
            .try_into()
            .unwrap(),
    });
    read.collect()
}

/// Checks what a machine checks; returns the manifest.
async fn checked(app: &App, path: &str) -> Value {
    let reply = current(app, path).await;
    let body = reply.ok();
    let envelope: Envelope = serde_json::from_value(body["envelope"].clone()).unwrap();
    let payload = dsse::verify(&envelope, SignedKind::Release, &trusted(app).await).unwrap();
    let text = String::from_utf8(payload).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text, provost_kernel::json::canonical(&manifest));
    assert_eq!(manifest["organizationId"], app.organization.as_str());
    assert_eq!(
        format!("{PROFILES}/{}", manifest["profileId"].as_str().unwrap()),
        path
    );
    assert_eq!(manifest["releaseId"], body["release"]["id"]);
    let files = body["files"].as_array().unwrap();
    let named = manifest["files"].as_array().unwrap();
    assert_eq!(files.len(), named.len());
    for (file, named) in files.iter().zip(named) {
        let bytes = file["content"].as_str().unwrap().as_bytes();
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
        assert_eq!(named["sha256"], provost_kernel::audit::hex(hash.as_ref()));
        assert_eq!((&named["name"], &named["role"]), (&file["name"], &file["role"]));
        assert_eq!(
            (&named["sizeBytes"], &named["mode"]),
            (&json!(bytes.len()), &json!("0644"))
        );
    }
    manifest
}

/// Proves MC-1, MC-7.
#[test]
fn a_machine_can_check_what_it_gets() {
    each("mc_delivery", |app: Arc<App>| async move {
        for (target, enforced, defaults, names) in [
            (
                "claude_code",
                json!({ "cleanupPeriodDays": 7 }),
                json!({ "model": "opus" }),
                ["managed-settings.json", "settings.json"],
            ),
            (
                "codex",
                json!({ "allow_remote_control": false }),
                json!({ "model": "x" }),
                ["requirements.toml", "config.toml"],
            ),
            (
                "generic_json",
                json!({ "x": [1.0, null] }),
                json!({ "y": "ü" }),
                ["enforced.json", "defaults.json"],
            ),
        ] {
            let path = profile(&app, target).await;
            let first = publish_all(&app, &path, json!({ "enforced": enforced, "defaults": defaults })).await;
            let manifest = checked(&app, &path).await;
            assert_eq!(
                (&manifest["target"], &manifest["version"]),
                (&json!(target), &json!(1))
            );
            assert_eq!(manifest["contentDigest"], first["contentDigest"]);
            assert_eq!(manifest["createdAt"], first["createdAt"]);
            assert_eq!(
                manifest["files"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|f| f["name"].as_str().unwrap())
                    .collect::<Vec<_>>(),
                names
            );
            publish(&app, &path, json!({})).await;
            assert_eq!(checked(&app, &path).await["files"].as_array().unwrap().len(), 1);
            perform(&app, &path, json!({ "sourceReleaseId": first["id"] }))
                .await
                .ok();
            let restored = checked(&app, &path).await;
            assert_eq!(
                (&restored["version"], &restored["files"]),
                (&json!(3), &manifest["files"])
            );

            // A new rule for absence reaches machines without a new release, and newer than what they have.
            app.advance(1);
            app.write("PATCH", &path, json!({ "onUnavailable": "fail_closed" }))
                .await
                .ok();
            let resigned = checked(&app, &path).await;
            assert_eq!(
                (&resigned["version"], &resigned["onUnavailable"]),
                (&json!(3), &json!("fail_closed"))
            );
            assert!(resigned["signedAt"].as_str() > restored["signedAt"].as_str());
            assert_eq!(resigned["createdAt"], restored["createdAt"]);
            app.write("POST", &format!("{path}/archive"), json!({}))
                .await
                .ok();
            assert_eq!(
                checked(&app, &path).await,
                resigned,
                "archiving takes nothing from a machine"
            );
        }
    });
}

#[test]
fn a_restored_store_releases_above_what_machines_have() {
    each("mc_epoch", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        publish(&app, &path, json!({ "x": 1 })).await;
        assert_eq!(checked(&app, &path).await["storeEpoch"], 0);
        let raise = |ctx: &mut provost_kernel::OperationContext<'_>| store::set_fact(ctx, "store_epoch", "1");
        app.kernel
            .system(OrganizationId::installation(), None, raise)
            .await
            .unwrap();
        // The same content is another release now: machines that were ahead would not take the old one.
        let again = publish(&app, &path, json!({ "x": 1 })).await;
        assert_eq!((&again["version"], &again["storeEpoch"]), (&json!(2), &json!(1)));
        assert_eq!(checked(&app, &path).await["storeEpoch"], 1);
        assert_eq!(publish(&app, &path, json!({ "x": 1 })).await["id"], again["id"]);
    });
}

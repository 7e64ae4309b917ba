//! What the audit log says of trusts and of exchanges, and what the answer warns of.

use super::*;
use crate::support::each;

/// What the last entry of an act says that a member became, or was.
async fn said(app: &App, action: &str, path: &str, side: &str) -> Value {
    let entries = app.entries(&app.organization, 0).await;
    let entry = entries.iter().rev().find(|entry| entry["action"] == action);
    let changes = entry.unwrap()["changes"].clone();
    let changes = changes.as_array().unwrap().iter();
    let change = changes.clone().find(|change| change["path"] == path);
    change.unwrap_or_else(|| panic!("{action} {path}: {changes:?}"))[side].clone()
}

#[test]
fn the_audit_log_says_what_a_trust_lets_in_and_whose_keys_were_used() {
    each("workload_audited", |app| async move {
        let scene = Scene::of(&app, Platform::Github, "viewer", &["policies:read"]).await;
        let made = "createHeadlessWorkloadTrust";
        assert_eq!(said(&app, made, "/lifetimeSeconds", "after").await, 900);
        assert_eq!(said(&app, made, "/maxTokenAgeSeconds", "after").await, 3600);
        let ids = said(&app, made, "/keyIds", "after").await;
        assert!(ids.as_array().unwrap().contains(&"rsa".into()), "{ids}");
        let shown = app.get(&format!("{TRUSTS}/{}", scene.trust)).await;
        let warnings = shown.ok()["warnings"].to_string();
        assert!(warnings.contains("own_keys"), "{warnings}");
        scene.session(&app).await;
        let keys = said(&app, "oauth.workload.admitted", "/keysOf", "after").await;
        assert_eq!(keys, "trust");
        app.delete(&format!("{TRUSTS}/{}", scene.trust)).await.ok();
        let gone = "deleteHeadlessWorkloadTrust";
        assert_eq!(
            said(&app, gone, "/issuer", "before").await,
            Platform::Github.issuer()
        );
        assert_eq!(
            said(&app, gone, "/scopes", "before").await,
            json!(["policies:read"])
        );
        let claims = said(&app, gone, "/claims", "before").await;
        assert!(claims.to_string().contains("repository_id"), "{claims}");
        assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
    });
}

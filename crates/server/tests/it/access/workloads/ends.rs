//! What ends a session of a workload, and what it cannot do while it lives.

use super::*;
use crate::samples;
use crate::support::each;
use provost_kernel::auth::ScopeSet;
use provost_kernel::operation::{Access, Kind};

async fn is_refused(app: &App, session: &str, what: &str) {
    let reply = app.request("GET", "/policies").token(session).send().await;
    assert_eq!(reply.status.as_u16(), 401, "{what}: {}", reply.text());
}

async fn works(app: &App, session: &str) {
    app.request("GET", "/policies").token(session).send().await.ok();
}

/// Proves WO-4.
#[test]
fn a_session_ends_at_once_with_what_its_trust_or_account_was() {
    each("workload_ends", |app| async move {
        let path = async |scene: &Scene| format!("/service-accounts/{}", scene.account);
        let scene = || {
            Scene::of(
                &app,
                Platform::Github,
                "operator",
                &["policies:read", "directory:read"],
            )
        };
        // The name alone changes nothing; everything else of the trust ends it.
        let one = scene().await;
        let session = one.session(&app).await;
        one.update(&app, json!({ "name": fresh_key() })).await.ok();
        works(&app, &session).await;
        for change in [
            json!({ "scopes": ["policies:read"] }),
            json!({ "lifetimeSeconds": 600 }),
            json!({ "maxTokenAgeSeconds": 600 }),
            json!({ "claims": [{ "claim": "repository_id", "value": "74" }] }),
            json!({ "suspended": true }),
        ] {
            let session = one.session(&app).await;
            one.update(&app, change.clone()).await.ok();
            is_refused(&app, &session, &change.to_string()).await;
        }
        not_accepted(&one.exchange(&app, &one.token(&app, |_| {})).await);
        one.update(&app, json!({ "suspended": false })).await.ok();
        app.advance(1);
        works(&app, &one.session(&app).await).await;
        let session = one.session(&app).await;
        one.update(&app, json!({ "audience": "https://provost.example" }))
            .await
            .ok();
        is_refused(&app, &session, "the audience").await;
        not_accepted(&one.exchange(&app, &one.token(&app, |_| {})).await);
        let named = one.token(&app, |claims| claims["aud"] = "https://provost.example".into());
        let session = access(&one.exchange(&app, &named).await);
        app.delete(&format!("{TRUSTS}/{}", one.trust)).await.ok();
        is_refused(&app, &session, "the trust is deleted").await;
        not_accepted(&one.exchange(&app, &one.token(&app, |_| {})).await);
        // The account: narrowed by scopes and by role, disabled, deleted.
        let two = scene().await;
        let session = two.session(&app).await;
        app.write("PATCH", &path(&two).await, json!({ "scopes": ["policies:read"] }))
            .await
            .ok();
        is_refused(&app, &session, "the account is narrowed").await;
        let narrower = two.exchange(&app, &two.token(&app, |_| {})).await;
        assert_eq!(narrower.ok()["scope"], "policies:read");
        let session = access(&narrower);
        // What the account gains is not the trust's.
        let wider = json!({ "scopes": ["policies:read", "directory:read", "audit:read"] });
        app.write("PATCH", &path(&two).await, wider).await.ok();
        works(&app, &session).await;
        let again = two.exchange(&app, &two.token(&app, |_| {})).await;
        assert_eq!(again.ok()["scope"], "directory:read policies:read");
        let session = access(&again);
        app.write("PATCH", &path(&two).await, json!({ "permissionRole": "viewer" }))
            .await
            .ok();
        is_refused(&app, &session, "the role is less").await;
        let session = two.session(&app).await;
        let off = format!("{}/disable", path(&two).await);
        app.write("POST", &off, json!({})).await.ok();
        is_refused(&app, &session, "the account is disabled").await;
        not_accepted(&two.exchange(&app, &two.token(&app, |_| {})).await);
        let on = format!("{}/enable", path(&two).await);
        app.write("POST", &on, json!({})).await.ok();
        is_refused(&app, &session, "what ended stays so").await;
        let session = two.session(&app).await;
        app.delete(&path(&two).await).await.ok();
        is_refused(&app, &session, "the account is deleted").await;
        app.get(&format!("{TRUSTS}/{}", two.trust))
            .await
            .refused(404, "not_found");
        not_accepted(&two.exchange(&app, &two.token(&app, |_| {})).await);
        assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
    });
}

/// Proves WO-4.
#[test]
fn a_session_ends_when_its_account_loses_what_it_had_by_name() {
    each("workload_by_name", |app| async move {
        let scopes = ["policies:read", "policies:inspect"];
        let scene = Scene::of(&app, Platform::Github, "operator", &scopes).await;
        let session = scene.session(&app).await;
        works(&app, &session).await;
        let path = format!("/service-accounts/{}", scene.account);
        app.write("PATCH", &path, json!({ "allOfRole": true })).await.ok();
        is_refused(&app, &session, "no list names policies:inspect any more").await;
    });
}

/// Proves WO-3.
#[test]
fn a_session_lives_as_long_as_both_allow_and_is_not_renewed() {
    each("workload_time", |app| async move {
        let scene = Scene::of(&app, Platform::Gitlab, "viewer", &["policies:read"]).await;
        let session = scene.session(&app).await;
        app.advance(899);
        works(&app, &session).await;
        app.advance(1);
        is_refused(&app, &session, "15 minutes").await;
        // The token's own end, where that is earlier.
        let now = app.now().as_ms() / 1000;
        let short = scene.token(&app, |claims| claims["exp"] = (now + 120).into());
        let session = access(&scene.exchange(&app, &short).await);
        app.advance(119);
        works(&app, &session).await;
        app.advance(1);
        is_refused(&app, &session, "the token's end").await;
        scene.update(&app, json!({ "lifetimeSeconds": 60 })).await.ok();
        let session = scene.session(&app).await;
        app.advance(60);
        is_refused(&app, &session, "the trust's life").await;
    });
}

/// An account that may do everything, by a workload: every operation with which something could be made that outlives the
/// session is refused, whatever is asked for.
/// Proves WO-3.
#[test]
fn a_session_of_a_workload_makes_nothing_that_outlives_it() {
    each("workload_detours", |app| async move {
        let scene = Scene::of(&app, Platform::Kubernetes, "admin", &[]).await;
        let everything = crate::support::every_scope().join(" ");
        let token = scene.token(&app, |_| {});
        let reply = exchange(&app, &scene.trust, &token, &[("scope", &everything)]).await;
        let session = access(&reply);
        let granted = ScopeSet::from_store(reply.json["scope"].as_str().unwrap());
        assert_eq!(granted.and(ScopeSet::lasting()), ScopeSet::default());
        assert!(granted.has("policies:write") && granted.has("service_accounts:read"));
        let detours = [
            "createHeadlessServiceAccount",
            "updateHeadlessServiceAccount",
            "enableHeadlessServiceAccount",
            "rotateHeadlessServiceAccountToken",
            "createHeadlessMcpClient",
            "updateHeadlessMcpClient",
            "createHeadlessWorkloadTrust",
            "updateHeadlessWorkloadTrust",
            "createHeadlessIdentityLink",
            "allowHeadlessIdentityRelinking",
            "createHeadlessDirectoryUser",
            "updateHeadlessDirectoryUser",
            "applyHeadlessDirectoryImport",
            "releaseHeadlessRestoreHeld",
            "installHeadlessSkillRegistryItem",
            "updateHeadlessAutomationSettings",
            "patchHeadlessAutomationSettings",
            "approveHeadlessDevice",
            "releaseHeadlessDevice",
            "putHeadlessDeviceGatewayIdentity",
            "deleteHeadlessDeviceGatewayIdentity",
        ];
        let mut tried = 0;
        for entry in app.kernel.registry.entries() {
            let meta = entry.meta;
            let needed: &[&str] = match meta.access {
                Access::Authenticated | Access::OfKind { .. } => &[],
                Access::Scoped { scope, .. } => &[scope],
                Access::ScopedEither { scope, other, .. } | Access::ScopedBoth { scope, other, .. } => {
                    &[scope, other]
                }
                Access::ScopedOrSelf {
                    scope, self_scope, ..
                } => &[scope, self_scope],
            };
            let is_lasting = needed.iter().all(|scope| ScopeSet::lasting().has(scope)) && !needed.is_empty();
            // Whatever shows a secret, now or in an area to come, is of a scope that says so.
            // Of a machine's own operation no session can be the caller.
            let is_of_kind = matches!(meta.access, Access::OfKind { .. });
            assert!(!meta.reveals_secret || is_lasting || is_of_kind, "{}", meta.id);
            assert!(!detours.contains(&meta.id) || is_lasting, "{}", meta.id);
            if !is_lasting || meta.kind == Kind::Read {
                continue;
            }
            let mut target = samples::fresh_target_of(&app, entry).await;
            if meta.path_parameters().contains(&"serviceAccountId") {
                target.account.clone_from(&scene.account);
            }
            let reply = samples::call(&app, entry, &target).token(&session).send().await;
            assert_eq!(reply.status.as_u16(), 403, "{}: {}", meta.id, reply.text());
            tried += 1;
        }
        assert!(tried > 25, "{tried}");
        // Nor does it say whose a machine is: the machine is taken for that user when the session is long gone.
        let machine = crate::areas::fleet::Machine::new(&app).await;
        let anna = crate::areas::directory::user(&app, "anna@acme.test").await;
        let path = format!("/devices/{}", machine.id);
        let body = crate::support::with_trio(json!({ "ownerUserId": anna }), &crate::support::fresh_key());
        let call = app.request("PATCH", &path).token(&session).json(body);
        call.send().await.refused(403, "insufficient_scope");
        // Its own token is exchanged for nothing, here or by another trust.
        not_accepted(&scene.exchange(&app, &session).await);
    });
}

//! Trusts that a restore holds back, and who lets them in again.

use super::*;
use crate::access::oauth::unit;
use crate::support::each;
use provost_kernel::{params, statements};
use provost_server::proofs::entries;

statements! {
    HOLD_ACCOUNT = "UPDATE service_accounts SET status = 'disabled', disabled_at = ?3, disabled_reason = 'restored' WHERE organization_id = ?1 AND id = ?2";
}

/// Holds every trust back as a restore does, and the account where it is named.
async fn hold(app: &App, account: Option<&str>) {
    let account = account.map(str::to_owned);
    unit(app, move |ctx| {
        entries::note_hold(ctx)?;
        for kind in provost_areas_access::workload_trusts::AREA.held {
            (kind.hold)(ctx)?;
        }
        let (org, now) = (ctx.org(), ctx.now());
        account
            .iter()
            .try_for_each(|id| ctx.queue(&HOLD_ACCOUNT, params![org, id.as_str(), now]))
    })
    .await;
    // What is exchanged later was issued later.
    app.advance(1);
}

async fn release(caller: &App, ids: Option<&[&str]>) -> Reply {
    let body = match ids {
        Some(ids) => json!({ "ids": ids, "confirm": true }),
        None => json!({ "all": true, "confirm": true }),
    };
    caller.write("POST", "/restore/release", body).await
}

async fn total_held(app: &App) -> Value {
    let listed = app.get("/restore/held?kind=workload_trust").await;
    listed.ok()["total"].clone()
}

/// Proves RH-1.
#[test]
fn a_restore_suspends_every_trust_until_somebody_lets_it_in() {
    each("workload_restore", |app| async move {
        let scene = Scene::of(&app, Platform::Github, "viewer", &["policies:read"]).await;
        let old = scene.token(&app, |_| {});
        hold(&app, None).await;
        not_accepted(&scene.exchange(&app, &scene.token(&app, |_| {})).await);
        let shown = app.get(&format!("{TRUSTS}/{}", scene.trust)).await;
        assert_eq!(shown.ok()["workloadTrust"]["suspendedReason"], "restored");
        let listed = app.get("/restore/held?kind=workload_trust").await;
        assert_eq!(listed.ok()["total"], 1);
        let one = &listed.json["held"][0];
        assert_eq!(
            (&one["kind"], &one["id"]),
            (&json!("workload_trust"), &json!(scene.trust))
        );
        assert_eq!(one["lastChangedAt"], shown.json["workloadTrust"]["updatedAt"]);
        // By the ordinary operation, whoever holds what the account can do.
        let weak = ["workload_trusts:write", "service_accounts:rotate"];
        let (_, weak) = app.account("weak", "admin", &weak).await;
        let weak = app.view_of(app.organization.clone(), weak);
        let on = json!({ "suspended": false });
        scene
            .update(&weak, on.clone())
            .await
            .refused(403, "escalation_forbidden");
        scene.update(&app, on).await.ok();
        assert_eq!(total_held(&app).await, 0);
        app.advance(1);
        not_accepted(&scene.exchange(&app, &old).await);
        scene.session(&app).await;
        // One that somebody suspends stays out when the others are released.
        hold(&app, None).await;
        scene.update(&app, json!({ "suspended": true })).await.ok();
        release(&app, None).await.ok();
        not_accepted(&scene.exchange(&app, &scene.token(&app, |_| {})).await);
        assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
    });
}

/// Proves RH-2, WO-2.
#[test]
fn a_held_trust_is_released_by_who_could_write_it_alone() {
    each("workload_release", |app| async move {
        let scene = Scene::of(&app, Platform::Github, "viewer", &["policies:read"]).await;
        hold(&app, None).await;
        let all = [
            "service_accounts:write",
            "workload_trusts:write",
            "service_accounts:rotate",
            "policies:read",
        ];
        for lacking in 0..all.len() {
            let scopes: Vec<&str> = all.into_iter().filter(|scope| *scope != all[lacking]).collect();
            let (_, caller) = app.account(&fresh_key(), "admin", &scopes).await;
            let caller = app.view_of(app.organization.clone(), caller);
            let code = if lacking == 3 {
                "escalation_forbidden"
            } else {
                "insufficient_scope"
            };
            for ids in [Some(&[scene.trust.as_str()][..]), None] {
                release(&caller, ids).await.refused(403, code);
            }
            assert_eq!(total_held(&app).await, 1, "without {}", all[lacking]);
        }
        not_accepted(&scene.exchange(&app, &scene.token(&app, |_| {})).await);
        let (_, caller) = app.account(&fresh_key(), "admin", &all).await;
        let caller = app.view_of(app.organization.clone(), caller);
        let released = release(&caller, Some(&[&scene.trust])).await;
        assert_eq!(released.ok()["workloadTrustIds"], json!([scene.trust]));
        assert_eq!(total_held(&app).await, 0);
        release(&caller, Some(&[&scene.trust]))
            .await
            .refused(404, "not_found");
        app.advance(1);
        scene.session(&app).await;
        assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
    });
}

/// Proves RH-1, RH-2.
#[test]
fn a_held_trust_is_not_released_while_its_account_is_held() {
    each("workload_account_held", |app| async move {
        let scene = Scene::of(&app, Platform::Github, "viewer", &["policies:read"]).await;
        let old = scene.token(&app, |_| {});
        let free = Scene::of(&app, Platform::Gitlab, "viewer", &["policies:read"]).await;
        hold(&app, Some(&scene.account)).await;
        release(&app, Some(&[&scene.trust]))
            .await
            .refused(409, "conflict");
        // Nobody is released where one is refused.
        release(&app, Some(&[&free.trust, &scene.trust]))
            .await
            .refused(409, "conflict");
        assert_eq!(total_held(&app).await, 2);
        // With its account it is, whichever is named first.
        let both = release(&app, Some(&[&scene.trust, &scene.account])).await;
        assert_eq!(both.ok()["workloadTrustIds"], json!([scene.trust]));
        assert_eq!(both.json["serviceAccountIds"], json!([scene.account]));
        app.advance(1);
        not_accepted(&scene.exchange(&app, &old).await);
        scene.session(&app).await;
        not_accepted(&free.exchange(&app, &free.token(&app, |_| {})).await);
        // Everybody at once.
        hold(&app, Some(&scene.account)).await;
        let everybody = release(&app, None).await;
        let mut trusts = vec![scene.trust.as_str(), free.trust.as_str()];
        trusts.sort_unstable();
        assert_eq!(everybody.ok()["workloadTrustIds"], json!(trusts));
        app.advance(1);
        scene.session(&app).await;
        free.session(&app).await;
        assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
    });
}

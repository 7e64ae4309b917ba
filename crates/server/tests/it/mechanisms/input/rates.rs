//! Limits of rate.

use super::{ACCOUNTS, effects};
use crate::samples;
use crate::support::{App, Call, each_with};
use provost_kernel::kernel::Settings;
use serde_json::json;
use std::sync::Arc;

#[test]
fn limits_are_announced_and_kept() {
    each_with("rates", &Settings::default(), |app: Arc<App>| async move {
        let list = || app.get(ACCOUNTS);
        let first = list().await;
        first.ok();
        assert_eq!(first.header("ratelimit-policy"), "\"read\";q=300;w=3");
        assert_eq!(first.header("ratelimit"), "\"read\";r=299;t=1");
        let (_, viewer) = app.account("viewer", "viewer", &["fleet:read"]).await;
        // Every answer to somebody who is known has them, refusals too.
        let refusals: Vec<(Call<'_>, u16, &str)> = vec![
            (app.request("GET", ACCOUNTS).token(&viewer), 403, "\"read\""),
            (
                app.request("GET", ACCOUNTS)
                    .at("/api/headless/v1/organizations/nowhere/service-accounts"),
                403,
                "\"read\"",
            ),
            (app.request("GET", "/service-accounts?limit=0"), 400, "\"read\""),
            (app.request("GET", "/service-accounts/none"), 404, "\"read\""),
            (app.request("POST", ACCOUNTS).json(json!({})), 400, "\"write\""),
            (
                app.request("POST", ACCOUNTS)
                    .header("content-type", "text/plain")
                    .bytes("x"),
                415,
                "\"write\"",
            ),
        ];
        for (call, status, policy) in refusals {
            let reply = call.send().await;
            assert_eq!(reply.status.as_u16(), status, "{}", reply.text());
            assert!(
                reply.header("ratelimit-policy").starts_with(policy),
                "{status} {}",
                reply.header("ratelimit-policy")
            );
            assert!(reply.header("ratelimit").starts_with(policy), "{status}");
        }
        app.advance(10);
        for _ in 0..300 {
            list().await.ok();
        }
        let limited = list().await;
        limited.refused(429, "rate_limited");
        assert_eq!(limited.json["retryable"], true);
        assert_eq!(limited.header("retry-after"), "1");
        assert_eq!(limited.header("ratelimit-policy"), "\"read\";q=300;w=3");
        assert_eq!(limited.header("ratelimit"), "\"read\";r=0;t=3");
        // Others are not limited by it, nor the same principal's changes.
        app.request("GET", "/capabilities")
            .token(&viewer)
            .send()
            .await
            .ok();
        app.write("PUT", "/automation/settings", json!({})).await.ok();
        app.advance(1);
        list().await.ok();
    });
}

#[test]
fn guessing_is_slowed_down_and_nobody_else_is() {
    each_with("guesses", &Settings::default(), |app: Arc<App>| async move {
        let guess = || app.request("GET", ACCOUNTS).token("prov_sat_guess").send();
        for _ in 0..30 {
            let reply = guess().await;
            reply.refused(401, "unauthenticated");
            assert_eq!(reply.header("ratelimit"), "");
        }
        let limited = guess().await;
        limited.refused(429, "rate_limited");
        assert_eq!(limited.header("retry-after"), "2");
        assert_eq!(limited.header("ratelimit-policy"), "\"authentication\";q=30;w=60");
        assert_eq!(limited.header("ratelimit"), "\"authentication\";r=0;t=60");
        app.request("GET", ACCOUNTS)
            .anonymous()
            .send()
            .await
            .refused(429, "rate_limited");
        app.get(ACCOUNTS).await.ok();
        app.advance(2);
        guess().await.refused(401, "unauthenticated");
    });
}

#[test]
fn an_account_is_rotated_thirty_times_an_hour() {
    each_with(
        "rotation_rate",
        &Settings::default(),
        |app: Arc<App>| async move {
            let path = format!("{ACCOUNTS}/{}/tokens", samples::fresh_target(&app).await.account);
            for _ in 0..30 {
                app.write("POST", &path, json!({})).await.ok();
            }
            let before = effects(&app).await;
            let limited = app.write("POST", &path, json!({})).await;
            limited.refused(429, "rate_limited");
            assert_eq!(limited.header("retry-after"), "120");
            assert_eq!(effects(&app).await, before);
            let other = format!("{ACCOUNTS}/{}/tokens", samples::fresh_target(&app).await.account);
            app.write("POST", &other, json!({})).await.ok();
            app.advance(120);
            app.write("POST", &path, json!({})).await.ok();
        },
    );
}

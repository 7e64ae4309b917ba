//! What holds at the MCP endpoint while ends of many sessions are being written down.

use super::*;
use crate::areas::directory::run_jobs;
use crate::areas::mcp_sessions::{new_session, open};
use crate::mechanisms::same_commit::make_by_mcp;
use crate::support::each;

/// The newest token of an account.
async fn token_id(app: &App, account: &str) -> String {
    let shown = app.get(&format!("/service-accounts/{account}")).await;
    let id = shown.ok().pointer("/serviceAccount/tokens/0/id").unwrap();
    id.as_str().unwrap().to_owned()
}

async fn revoke_all(app: &App, of: Value) -> Value {
    let mut body = of;
    body["confirm"] = true.into();
    app.write("POST", &format!("{SESSIONS}/revoke"), body)
        .await
        .ok()
        .clone()
}

/// MS-4, MS-5: an end counts from its unit on, written down or not.
/// Proves MS-5.
#[test]
fn an_end_that_is_not_written_down_holds_at_mcp_and_touches_nobody_else() {
    each("sessions_ending", |app: Arc<App>| async move {
        let (blamed_id, blamed) = app.account("blamed", "admin", &[]).await;
        let (known_id, known) = app.account("known", "admin", &[]).await;
        let (_, new) = app.account("new", "admin", &[]).await;
        make_by_mcp(app.clone(), blamed.clone(), "one").await.ok();
        // A session of a token that ran out is nobody's fault.
        let ran_out = NewSession {
            token_id: Some(token_id(&app, &known_id).await),
            expires_at: app.now().plus_secs(60),
            ..new_session(&app, "another client")
        };
        open(&app, vec![ran_out]).await;
        app.advance(61);
        assert_eq!(mcp_sessions::sweep(&app.kernel).await.unwrap(), 1);
        make_by_mcp(app.clone(), known.clone(), "two").await.ok();
        // More than are written down at once.
        for _ in 0..12 {
            open(&app, (0..50).map(|_| new_session(&app, "crowd")).collect()).await;
        }
        assert_eq!(
            revoke_all(&app, json!({ "clientId": "crowd" })).await["count"],
            600
        );
        let of_account = json!({ "serviceAccountId": blamed_id });
        assert_eq!(revoke_all(&app, of_account).await["count"], 1);

        for _ in 0..2 {
            let late = make_by_mcp(app.clone(), blamed.clone(), "late").await;
            late.refused(401, "token_revoked");
        }
        make_by_mcp(app.clone(), known.clone(), "three").await.ok();
        // An account that was disabled for a while did nothing wrong, and begins anew.
        for act in ["disable", "enable"] {
            let path = format!("/service-accounts/{known_id}/{act}");
            app.write("POST", &path, json!({})).await.ok();
        }
        make_by_mcp(app.clone(), known, "again").await.ok();
        for name in ["four", "five"] {
            make_by_mcp(app.clone(), new.clone(), name).await.ok();
        }
        let active = app.get(&format!("{SESSIONS}?status=active")).await;
        assert_eq!(active.ok()["total"], 2, "one of each that may come");
        run_jobs(&app).await;
        let late = make_by_mcp(app.clone(), blamed, "late").await;
        late.refused(401, "token_revoked");
        assert_eq!(
            app.get(&format!("{SESSIONS}?status=active")).await.ok()["total"],
            2
        );
    });
}

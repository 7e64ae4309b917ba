//! Users whom a restore holds back, as they are released (RH-1, RH-2). The restore itself is tested with the program.

use crate::support::{App, each};
use provost_kernel::db::{Access, Conn};
use serde_json::{Value, json};
use std::sync::Arc;

/// Holds every user with a role back, as a restore does.
fn hold(app: &App) {
    let location = app.location();
    let sql = "UPDATE directory_users SET status = 'suspended', suspended_at = updated_at, suspended_by = 'restore' \
               WHERE permission_role IS NOT NULL";
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Conn::open(&location, Access::Write).unwrap().batch(sql).unwrap());
        run.join().unwrap();
    });
}

#[test]
fn who_is_held_acts_again_when_somebody_who_could_give_the_role_says_so() {
    each("restore_held", |app: Arc<App>| async move {
        let mut ids = Vec::new();
        for (name, role) in [("boss", "admin"), ("clerk", "operator")] {
            let body = json!({ "loginName": name, "permissionRole": role });
            let made = app.write("POST", "/directory/users", body).await;
            ids.push(made.ok()["user"]["id"].as_str().unwrap().to_owned());
        }
        hold(&app);
        let status = async |id: &str| {
            let user = app.get(&format!("/directory/users/{id}")).await;
            user.ok()["user"]["status"].as_str().unwrap().to_owned()
        };
        let (_, narrow) = app
            .account("narrow", "admin", &["service_accounts:write", "directory:write"])
            .await;
        let narrow = Arc::new(app.view_of(app.organization.clone(), narrow));
        for body in [
            json!({ "all": true, "confirm": true }),
            json!({ "ids": [ids[0]], "confirm": true }),
            json!({ "ids": [ids[1]], "confirm": true }),
        ] {
            narrow
                .write("POST", "/restore/release", body)
                .await
                .refused(403, "escalation_forbidden");
        }
        for id in &ids {
            assert_eq!(status(id).await, "suspended");
        }
        let one = json!({ "ids": [ids[1]], "confirm": true });
        let released = app.write("POST", "/restore/release", one).await;
        assert_eq!(released.ok()["userIds"], json!([ids[1]]));
        assert_eq!(status(&ids[1]).await, "active");
        assert_eq!(status(&ids[0]).await, "suspended", "who is not named stays held");
        let all = json!({ "all": true, "confirm": true });
        app.write("POST", "/restore/release", all).await.ok();
        assert_eq!(status(&ids[0]).await, "active");
        let held: Value = app.get("/restore/held").await.ok().clone();
        assert_eq!(held["held"], json!([]));
    });
}

//! Calls beside the examples of the operations that aim at somebody who may do more than the caller, or at the caller.
//!
//! What is made up for the caller's use has `mallory` in it: a door that opens by such a word is in the caller's hand.

use super::Caller;
use crate::areas::directory::{self, NDJSON, chunk, finish_imports};
use crate::areas::fleet::{self, Machine};
use crate::areas::oauth::public_client;
use crate::areas::resources::{credential_body, make_resource, resource_body};
use crate::areas::workload_trusts::{one_of, trust_of};
use crate::support::{App, every_scope, fresh_key};
use provost_kernel::db::Statement;
use provost_kernel::{params, statements};
use serde_json::{Value, json};

statements! {
    HOLD_ACCOUNT = "UPDATE service_accounts SET status = 'disabled', disabled_at = ?3, disabled_reason = 'restored' WHERE organization_id = ?1 AND id = ?2";
    HOLD_USER = "UPDATE directory_users SET status = 'suspended', suspended_at = ?3, suspended_by = 'restore' WHERE organization_id = ?1 AND id = ?2";
    HOLD_CLIENT = "UPDATE oauth_clients SET blocked_at = ?3, blocked_reason = 'restored' WHERE organization_id = ?1 AND id = ?2";
    HOLD_LINK = "UPDATE oauth_identities SET held_at = ?3 WHERE organization_id = ?1 AND user_id = ?2";
    HOLD_DEVICE = "UPDATE devices SET held_at = ?3 WHERE organization_id = ?1 AND id = ?2";
    HOLD_TRUST = "UPDATE workload_trusts SET suspended_at = ?3, suspended_reason = 'restored' WHERE organization_id = ?1 AND id = ?2";
}

const ISSUER: &str = "https://issuer.example";

/// A call: what it is about, and what is sent.
pub struct Neighbour {
    pub what: &'static str,
    pub method: &'static str,
    pub path: String,
    pub body: Value,
    pub content: Option<(&'static str, Vec<u8>)>,
}

fn mallory() -> String {
    format!("mallory-{}", fresh_key())
}

async fn make(app: &App, path: &str, body: Value, pointer: &str) -> String {
    let made = app.write("POST", path, body).await;
    let id = made.ok().pointer(pointer).and_then(Value::as_str);
    id.unwrap_or_else(|| panic!("{}", made.text())).to_owned()
}

/// Who may do everything, as an account.
async fn boss(app: &App) -> String {
    app.account(&fresh_key(), "admin", &[]).await.0
}

async fn weak(app: &App) -> String {
    app.account(&fresh_key(), "viewer", &["policies:read"]).await.0
}

/// Who may do what the caller may.
async fn like(app: &App, me: &Caller) -> String {
    app.account(&fresh_key(), me.role.as_str(), &me.listed()).await.0
}

async fn disabled(app: &App, id: String) -> String {
    let path = format!("/service-accounts/{id}/disable");
    app.write("POST", &path, json!({})).await.ok();
    id
}

async fn token_of(app: &App, id: &str) -> String {
    let seen = app.seen(id).await;
    seen["tokens"][0]["id"].as_str().unwrap().to_owned()
}

/// Who may do everything, as a user.
async fn boss_user(app: &App) -> (String, Value) {
    let name = fresh_key();
    let body = json!({
        "loginName": format!("{name}@acme.test"), "email": format!("{name}@mail.test"), "externalId": name,
        "permissionRole": "admin",
    });
    let id = make(app, "/directory/users", body.clone(), "/user/id").await;
    (id, body)
}

async fn plain_user(app: &App) -> String {
    directory::user(app, &format!("{}@acme.test", fresh_key())).await
}

async fn act_on_user(app: &App, id: &str, how: &str) {
    let path = format!("/directory/users/{id}/{how}");
    app.write("POST", &path, json!({})).await.ok();
}

async fn linked(app: &App, user: &str) -> String {
    let subject = fresh_key();
    let body = json!({ "issuer": ISSUER, "subject": subject, "userId": user });
    app.write("POST", "/directory/identity-links", body).await.ok();
    subject
}

/// Has somebody be as a restore leaves them.
async fn hold(app: &App, statement: &'static Statement, id: &str) {
    let id = id.to_owned();
    let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        let (org, now) = (ctx.org(), ctx.now());
        ctx.queue(statement, params![org, id.as_str(), now])
    };
    app.kernel
        .system(app.org(), Some("test.held"), run)
        .await
        .unwrap();
}

/// A machine that is taken for everybody's boss: as its owner, or by an account.
async fn boss_machine(app: &App, how: &str) -> String {
    let id = Machine::new(app).await.id;
    if how == "owner" {
        let (user, _) = boss_user(app).await;
        name_owner(app, &id, &user).await;
    } else {
        let body = json!({ "serviceAccountId": boss(app).await });
        app.write("PUT", &format!("/devices/{id}/gateway-identity"), body)
            .await
            .ok();
    }
    id
}

async fn name_owner(app: &App, id: &str, user: &str) {
    let body = json!({ "ownerUserId": user });
    app.write("PATCH", &format!("/devices/{id}"), body).await.ok();
}

async fn quarantined(app: &App, id: String) -> String {
    let path = format!("/devices/{id}/quarantine");
    app.write("POST", &path, json!({})).await.ok();
    id
}

/// A group that opens a credential and is excepted by a policy.
async fn guarded_group(app: &App) -> String {
    let group = directory::group(app, &fresh_key()).await;
    let resource = make_resource(app).await;
    let mut body = credential_body();
    body["assignedTo"] = json!({ "users": [], "groups": [group], "serviceAccounts": [] });
    make(app, &format!("/resources/{resource}/credentials"), body, "/id").await;
    let definition = json!({
        "id": fresh_key(), "name": "guard", "enabled": true, "action": "block", "evaluateOn": ["pre_tool"],
        "conditions": { "field": "tool.id", "op": "eq", "value": "shell" },
        "except": { "field": "identity.group_ids", "op": "in", "value": [group] },
    });
    app.write("POST", "/content-policies", json!({ "definition": definition }))
        .await;
    group
}

async fn bosses_client(app: &App) -> String {
    let mut body = public_client(&fresh_key());
    body["scopes"] = json!(["policies:write", "service_accounts:write", "mcp:write"]);
    make(app, "/mcp/clients", body, "/id").await
}

fn account_client(account: &str, scopes: &Value) -> Value {
    json!({
        "name": mallory(), "grantTypes": ["client_credentials"], "tokenEndpointAuthMethod": "private_key_jwt",
        "jwksUri": "https://mallory.example/keys.json", "scopes": scopes, "serviceAccountId": account,
    })
}

/// Opens an import as the admin and lets the caller send lines.
async fn sent(app: &App, me: &Caller, lines: &[Value]) -> String {
    finish_imports(app).await;
    let how = json!({ "format": "jsonl", "mode": "merge" });
    let id = make(app, "/directory/imports", how, "/import/id").await;
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let mine = app.view_of(app.organization.clone(), me.token.clone());
    let _ = chunk(&mine, &id, 1, &lines.join("\n")).await;
    id
}

/// Returns the hostile calls of an operation.
#[expect(clippy::too_many_lines, reason = "one list, by operation")]
pub async fn neighbours(app: &App, me: &Caller, operation: &str) -> Vec<Neighbour> {
    let call = |what, method, path: String, body| Neighbour {
        what,
        method,
        path,
        body,
        content: None,
    };
    let post = |what, path: String, body| call(what, "POST", path, body);
    let own = json!(me.listed());
    let everything = json!(every_scope());
    match operation {
        "createHeadlessServiceAccount" => {
            let path = || "/service-accounts".to_owned();
            let of = |role: &str, scopes: &Value| json!({ "name": mallory(), "permissionRole": role, "scopes": scopes });
            let mut owned = of(me.role.as_str(), &own);
            owned["ownerConsoleUserId"] = plain_user(app).await.into();
            owned["expiresInSeconds"] = 31_536_000.into();
            let whole = json!({ "name": mallory(), "permissionRole": "admin", "allOfRole": true });
            vec![
                post("an admin of everything", path(), whole),
                post("an admin of every scope", path(), of("admin", &everything)),
                post("an admin of the caller's scopes", path(), of("admin", &own)),
                post("a viewer", path(), of("viewer", &json!(["policies:read"]))),
                post("its like with an owner", path(), owned),
            ]
        }
        "updateHeadlessServiceAccount" => {
            let (boss, weak, other) = (boss(app).await, weak(app).await, self::weak(app).await);
            let off = disabled(app, self::boss(app).await).await;
            let user = plain_user(app).await;
            let patch = |what, id: &str, body| call(what, "PATCH", format!("/service-accounts/{id}"), body);
            let whole = json!({ "permissionRole": "admin", "allOfRole": true });
            vec![
                patch("promote somebody", &weak, whole.clone()),
                patch("promote oneself", &me.id, whole),
                patch(
                    "give oneself every scope",
                    &me.id,
                    json!({ "scopes": everything }),
                ),
                patch(
                    "give somebody the caller's scopes",
                    &other,
                    json!({ "scopes": own }),
                ),
                patch(
                    "make somebody the caller's like",
                    &self::weak(app).await,
                    json!({ "permissionRole": me.role.as_str(), "scopes": own }),
                ),
                patch("rename an admin", &boss, json!({ "name": mallory() })),
                patch(
                    "rename an admin who is disabled",
                    &off,
                    json!({ "name": mallory() }),
                ),
                patch(
                    "give an admin's account an owner",
                    &boss,
                    json!({ "ownerConsoleUserId": user }),
                ),
                patch("demote an admin", &boss, json!({ "permissionRole": "viewer" })),
                patch("narrow an admin", &boss, json!({ "scopes": own })),
            ]
        }
        "enableHeadlessServiceAccount" | "disableHeadlessServiceAccount" => {
            let verb = if operation.starts_with("enable") {
                "enable"
            } else {
                "disable"
            };
            let off = disabled(app, boss(app).await).await;
            let (held, weak) = (boss(app).await, disabled(app, weak(app).await).await);
            hold(app, &HOLD_ACCOUNT, &held).await;
            let like = disabled(app, like(app, me).await).await;
            let path = |id: &str| format!("/service-accounts/{id}/{verb}");
            vec![
                post("an admin who is disabled", path(&off), json!({})),
                post("an admin whom a restore holds", path(&held), json!({})),
                post("an admin", path(&boss(app).await), json!({})),
                post("a viewer who is disabled", path(&weak), json!({})),
                post("its like who is disabled", path(&like), json!({})),
            ]
        }
        "deleteHeadlessServiceAccount" => {
            let path = format!("/service-accounts/{}", boss(app).await);
            vec![call("an admin", "DELETE", path, Value::Null)]
        }
        "rotateHeadlessServiceAccountToken" => {
            let path = |id: &str| format!("/service-accounts/{id}/tokens");
            let off = disabled(app, boss(app).await).await;
            let narrowed = json!({
                "name": fresh_key(), "permissionRole": "admin", "scopes": everything, "tokenScopes": own,
            });
            let narrowed = make(app, "/service-accounts", narrowed, "/serviceAccount/id").await;
            let year = json!({ "expiresInSeconds": 31_536_000, "gracePeriodSeconds": 604_800 });
            vec![
                post("an admin's", path(&boss(app).await), json!({})),
                post("a disabled admin's", path(&off), json!({})),
                post("a narrowed one of an admin", path(&narrowed), json!({})),
                post(
                    "a narrowed one, widened",
                    path(&narrowed),
                    json!({ "allOfAccount": true }),
                ),
                post("a viewer's", path(&weak(app).await), json!({})),
                post("its like's", path(&like(app, me).await), json!({})),
                post("the caller's, for a year", path(&me.id), year),
            ]
        }
        "revokeHeadlessServiceAccountToken" => {
            let boss = boss(app).await;
            let path = format!(
                "/service-accounts/{boss}/tokens/{}/revoke",
                token_of(app, &boss).await
            );
            vec![post("an admin's", path, json!({}))]
        }
        "releaseHeadlessRestoreHeld" => {
            let account = boss(app).await;
            hold(app, &HOLD_ACCOUNT, &account).await;
            let ((user, _), (active, _)) = (boss_user(app).await, boss_user(app).await);
            for id in [&user, &active] {
                linked(app, id).await;
                hold(app, &HOLD_LINK, id).await;
            }
            hold(app, &HOLD_USER, &user).await;
            let client = bosses_client(app).await;
            hold(app, &HOLD_CLIENT, &client).await;
            let trust = one_of(app, &boss(app).await).await;
            hold(app, &HOLD_TRUST, &trust).await;
            let mut machines = Vec::new();
            for how in ["owner", "account"] {
                let id = boss_machine(app, how).await;
                hold(app, &HOLD_DEVICE, &id).await;
                machines.push(id);
            }
            let path = || "/restore/release".to_owned();
            let ids = |id: &str| json!({ "ids": [id] });
            vec![
                post("an admin", path(), ids(&account)),
                post("an admin user", path(), ids(&user)),
                post("the link of an admin user", path(), ids(&active)),
                post("an admin's client", path(), ids(&client)),
                post("an admin's workloads", path(), ids(&trust)),
                post("an admin's machine", path(), ids(&machines[0])),
                post("a machine that is taken for an admin", path(), ids(&machines[1])),
                post("everybody", path(), json!({ "all": true })),
            ]
        }
        "updateHeadlessDevice" => {
            let ((boss, _), plain) = (boss_user(app).await, plain_user(app).await);
            let (mine, hers) = (Machine::new(app).await.id, boss_machine(app, "owner").await);
            let patch = |what, id: &str, body| call(what, "PATCH", format!("/devices/{id}"), body);
            vec![
                patch("an admin's", &mine, json!({ "ownerUserId": boss })),
                patch("somebody's", &mine, json!({ "ownerUserId": plain })),
                patch("nobody's any more", &hers, json!({ "ownerUserId": null })),
            ]
        }
        "putHeadlessDeviceGatewayIdentity" => {
            let off = disabled(app, boss(app).await).await;
            let (weak, like) = (weak(app).await, like(app, me).await);
            let (id, hers) = (Machine::new(app).await.id, boss_machine(app, "owner").await);
            let put = |what, id: &str, account: &str| {
                let body = json!({ "serviceAccountId": account });
                call(what, "PUT", format!("/devices/{id}/gateway-identity"), body)
            };
            vec![
                put("an admin", &id, &boss(app).await),
                put("an admin who is disabled", &id, &off),
                put("a viewer", &id, &weak),
                put("its like", &id, &like),
                put("a viewer, of an admin's machine", &hers, &weak),
            ]
        }
        "deleteHeadlessDeviceGatewayIdentity" => {
            let (of_boss, hers) = (
                boss_machine(app, "account").await,
                boss_machine(app, "owner").await,
            );
            let body = json!({ "serviceAccountId": weak(app).await });
            let path = |id: &str| format!("/devices/{id}/gateway-identity");
            app.write("PUT", &path(&hers), body).await.ok();
            vec![
                call("an admin's", "DELETE", path(&of_boss), Value::Null),
                call(
                    "a viewer's, of an admin's machine",
                    "DELETE",
                    path(&hers),
                    Value::Null,
                ),
            ]
        }
        "releaseHeadlessDevice" => {
            let path = |id: &str| format!("/devices/{id}/release");
            let plain = Machine::new(app).await.id;
            name_owner(app, &plain, &plain_user(app).await).await;
            let mut all = Vec::new();
            for (what, id) in [
                ("an admin's", boss_machine(app, "owner").await),
                (
                    "one that is taken for an admin",
                    boss_machine(app, "account").await,
                ),
                ("somebody's", plain),
            ] {
                all.push(post(what, path(&quarantined(app, id).await), json!({})));
            }
            all
        }
        "approveHeadlessDevice" => {
            let mut all = Vec::new();
            for (what, user) in [
                ("an admin's", boss_user(app).await.0),
                ("somebody's", plain_user(app).await),
            ] {
                let id = fleet::waiting(app).await;
                name_owner(app, &id, &user).await;
                all.push(post(what, format!("/devices/{id}/approve"), json!({})));
            }
            all
        }
        "createHeadlessWorkloadTrust" => {
            let off = disabled(app, boss(app).await).await;
            let path = || "/workload-trusts".to_owned();
            let narrow = |account: &str, scopes: &Value| {
                let mut body = trust_of(account, &mallory());
                body["scopes"] = scopes.clone();
                body
            };
            let looks = json!(["policies:read"]);
            let boss = boss(app).await;
            vec![
                post("an admin", path(), trust_of(&boss, &mallory())),
                post("an admin, for what only looks", path(), narrow(&boss, &looks)),
                post("an admin who is disabled", path(), trust_of(&off, &mallory())),
                post("a viewer", path(), narrow(&weak(app).await, &looks)),
                post(
                    "the caller's like",
                    path(),
                    trust_of(&like(app, me).await, &mallory()),
                ),
                post("the caller", path(), trust_of(&me.id, &mallory())),
            ]
        }
        "updateHeadlessWorkloadTrust" => {
            let of_boss = one_of(app, &boss(app).await).await;
            let held = one_of(app, &boss(app).await).await;
            let suspend = json!({ "suspended": true });
            app.write("PATCH", &format!("/workload-trusts/{held}"), suspend)
                .await
                .ok();
            let patch = |what, id: &str, body| call(what, "PATCH", format!("/workload-trusts/{id}"), body);
            let mine = json!([{ "claim": "repository", "value": "mallory/own" }]);
            let keys = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "mallory",
                "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] });
            vec![
                patch("let another workload in", &of_boss, json!({ "claims": mine })),
                patch("give it keys", &of_boss, json!({ "jwks": keys })),
                patch("give it an audience", &of_boss, json!({ "audience": mallory() })),
                patch("let it in again", &held, json!({ "suspended": false })),
                patch(
                    "take scopes from it",
                    &of_boss,
                    json!({ "scopes": ["policies:read"] }),
                ),
                patch(
                    "give scopes to it",
                    &of_boss,
                    json!({ "scopes": ["policies:read", "policies:write"] }),
                ),
                patch("suspend it", &of_boss, json!({ "suspended": true })),
            ]
        }
        "deleteHeadlessWorkloadTrust" => {
            let path = format!("/workload-trusts/{}", one_of(app, &boss(app).await).await);
            vec![call("an admin's", "DELETE", path, Value::Null)]
        }
        "patchHeadlessAutomationSettings" => {
            let tokens =
                json!({ "tokens": { "maxLifetimeSeconds": 31_536_000, "defaultGraceSeconds": 604_800 } });
            let path = "/automation/settings".to_owned();
            let members = json!({ "directory": { "defaultRole": "member" } });
            vec![
                call("long lives", "PATCH", path.clone(), tokens),
                call("everybody a member", "PATCH", path, members),
            ]
        }
        "createHeadlessDirectoryUser" => {
            let (boss, gone) = (boss_user(app).await, boss_user(app).await);
            app.delete(&format!("/directory/users/{}", gone.0)).await;
            let path = || "/directory/users".to_owned();
            let of = |role: &str| json!({ "loginName": mallory(), "permissionRole": role });
            vec![
                post("an admin", path(), of("admin")),
                post("a viewer", path(), of("viewer")),
                post(
                    "with an admin's address",
                    path(),
                    json!({ "loginName": mallory(), "email": boss.1["email"] }),
                ),
                post(
                    "with a deleted admin's external id",
                    path(),
                    json!({ "loginName": mallory(), "externalId": gone.1["externalId"] }),
                ),
                post(
                    "under a deleted admin's name",
                    path(),
                    json!({ "loginName": gone.1["loginName"], "permissionRole": "viewer" }),
                ),
            ]
        }
        "updateHeadlessDirectoryUser" => {
            let ((boss, body), plain) = (boss_user(app).await, plain_user(app).await);
            let (off, _) = boss_user(app).await;
            act_on_user(app, &off, "suspend").await;
            let patch = |what, id: &str, body| call(what, "PATCH", format!("/directory/users/{id}"), body);
            let address = format!("{}@evil.test", mallory());
            vec![
                patch("rename an admin", &boss, json!({ "loginName": mallory() })),
                patch("give an admin an address", &boss, json!({ "email": address })),
                patch(
                    "give an admin an external id",
                    &boss,
                    json!({ "externalId": mallory() }),
                ),
                patch(
                    "rename an admin and take her role",
                    &boss,
                    json!({ "loginName": mallory(), "permissionRole": null }),
                ),
                patch(
                    "rename a suspended admin",
                    &off,
                    json!({ "loginName": mallory() }),
                ),
                patch("promote a user", &plain, json!({ "permissionRole": "admin" })),
                patch(
                    "make a user a viewer",
                    &plain,
                    json!({ "permissionRole": "viewer" }),
                ),
                patch("rename a user", &plain, json!({ "loginName": mallory() })),
                patch(
                    "a user with an admin's address",
                    &plain,
                    json!({ "email": body["email"] }),
                ),
                patch("take an admin's role", &boss, json!({ "permissionRole": null })),
            ]
        }
        "deleteHeadlessDirectoryUser" => {
            let (boss, _) = boss_user(app).await;
            linked(app, &boss).await;
            let path = format!("/directory/users/{boss}");
            vec![call("an admin", "DELETE", path, Value::Null)]
        }
        "suspendHeadlessDirectoryUser" | "reactivateHeadlessDirectoryUser" => {
            let verb = if operation.starts_with("suspend") {
                "suspend"
            } else {
                "reactivate"
            };
            let ((off, _), (held, _)) = (boss_user(app).await, boss_user(app).await);
            act_on_user(app, &off, "suspend").await;
            hold(app, &HOLD_USER, &held).await;
            let plain = plain_user(app).await;
            act_on_user(app, &plain, "suspend").await;
            let path = |id: &str| format!("/directory/users/{id}/{verb}");
            vec![
                post("a suspended admin", path(&off), json!({})),
                post("an admin whom a restore holds", path(&held), json!({})),
                post("an admin", path(&boss_user(app).await.0), json!({})),
                post("a suspended user without a role", path(&plain), json!({})),
            ]
        }
        "updateHeadlessDirectoryGroup" => {
            let path = format!("/directory/groups/{}", guarded_group(app).await);
            vec![call(
                "rename a group",
                "PATCH",
                path,
                json!({ "name": mallory() }),
            )]
        }
        "deleteHeadlessDirectoryGroup" => {
            let path = format!("/directory/groups/{}", guarded_group(app).await);
            vec![call("a group that opens something", "DELETE", path, Value::Null)]
        }
        "addHeadlessDirectoryGroupMember" | "removeHeadlessDirectoryGroupMember" => {
            let (group, plain) = (guarded_group(app).await, plain_user(app).await);
            let (boss, _) = boss_user(app).await;
            let path = |user: &str| format!("/directory/groups/{group}/members/{user}");
            if operation.starts_with("remove") {
                app.write("PUT", &path(&boss), json!({})).await.ok();
                return vec![call("an admin", "DELETE", path(&boss), Value::Null)];
            }
            vec![
                call("somebody", "PUT", path(&plain), json!({})),
                call("an admin", "PUT", path(&boss), json!({})),
            ]
        }
        "sendHeadlessDirectoryImportChunk" => {
            let ((_, body), id) = (boss_user(app).await, sent(app, me, &[]).await);
            let line = json!({ "type": "user", "loginName": mallory(), "externalId": body["externalId"] });
            let path = format!("/directory/imports/{id}/chunks?sequence=1");
            vec![Neighbour {
                content: Some((NDJSON, line.to_string().into_bytes())),
                ..post("rename an admin", path, Value::Null)
            }]
        }
        // One import is open at a time: one file holds what a file could try.
        "applyHeadlessDirectoryImport" => {
            let group = fresh_key();
            directory::group(app, &group).await;
            let mut admins = Vec::new();
            for _ in 0..4 {
                admins.push(boss_user(app).await);
            }
            act_on_user(app, &admins[2].0, "suspend").await;
            app.delete(&format!("/directory/users/{}", admins[3].0)).await;
            let lines = [
                json!({ "type": "user", "loginName": mallory(), "externalId": admins[0].1["externalId"] }),
                json!({ "type": "user", "loginName": admins[1].1["loginName"], "email": format!("{}@evil.test", mallory()) }),
                json!({ "type": "user", "loginName": admins[2].1["loginName"], "status": "active" }),
                json!({ "type": "user", "loginName": admins[3].1["loginName"] }),
                json!({ "type": "user", "loginName": mallory(), "groups": [group] }),
            ];
            let id = sent(app, me, &lines).await;
            let path = format!("/directory/imports/{id}/apply");
            vec![post("a file that re-points admins", path, json!({}))]
        }
        "settleHeadlessDirectoryHeldChanges" => {
            let id = directory::held(app, &mallory()).await;
            let path = "/directory/held-changes/settle".to_owned();
            vec![post(
                "apply a new address of an admin",
                path,
                json!({ "apply": [id] }),
            )]
        }
        "mapHeadlessDirectoryIdentity" => {
            let ((boss, body), plain) = (boss_user(app).await, plain_user(app).await);
            let map = |what, word: Value, user: &str| {
                let body = json!({ "word": word, "userId": user });
                post(what, "/directory/identities".to_owned(), body)
            };
            vec![
                map(
                    "a word of an admin to somebody",
                    body["loginName"].clone(),
                    &plain,
                ),
                map("a word to an admin", mallory().into(), &boss),
            ]
        }
        "createHeadlessIdentityLink" => {
            let ((boss, _), (taken, _)) = (boss_user(app).await, boss_user(app).await);
            let (plain, subject) = (plain_user(app).await, linked(app, &taken).await);
            let link = |what, subject: String, user: &str| {
                let body = json!({ "issuer": ISSUER, "subject": subject, "userId": user, "replace": true });
                post(what, "/directory/identity-links".to_owned(), body)
            };
            vec![
                link("an admin", mallory(), &boss),
                link("an admin, in place of another subject", mallory(), &taken),
                link("a user without a role", mallory(), &plain),
                link("an admin's subject to somebody", subject, &plain),
            ]
        }
        "removeHeadlessIdentityLinks" => {
            let (boss, _) = boss_user(app).await;
            let subject = linked(app, &boss).await;
            let path = "/directory/identity-links/remove".to_owned();
            vec![post(
                "an admin's",
                path,
                json!({ "issuer": ISSUER, "subject": subject }),
            )]
        }
        "allowHeadlessIdentityRelinking" => {
            let ((boss, _), plain) = (boss_user(app).await, plain_user(app).await);
            let allow = |what, whom: Value| {
                let mut body = whom;
                body["issuer"] = ISSUER.into();
                body["expiresInSeconds"] = 604_800.into();
                post(what, "/directory/identity-links/allow".to_owned(), body)
            };
            vec![
                allow("an admin", json!({ "userIds": [boss] })),
                allow("everybody", json!({ "all": true })),
                allow("a user without a role", json!({ "userIds": [plain] })),
            ]
        }
        "createHeadlessMcpClient" => {
            let path = || "/mcp/clients".to_owned();
            let mut public = public_client(&mallory());
            public["redirectUris"] = json!(["https://mallory.example/back"]);
            let mut wide = public.clone();
            (wide["name"], wide["scopes"]) = (mallory().into(), everything.clone());
            public["scopes"] = own.clone();
            let (boss, weak) = (boss(app).await, weak(app).await);
            vec![
                post("of every scope", path(), wide),
                post("of the caller's scopes", path(), public),
                post("an admin's account", path(), account_client(&boss, &everything)),
                post(
                    "an admin's account, of the caller's scopes",
                    path(),
                    account_client(&boss, &own),
                ),
                post("a viewer's account", path(), account_client(&weak, &own)),
                post("the caller's own account", path(), account_client(&me.id, &own)),
            ]
        }
        "updateHeadlessMcpClient" => {
            let (client, blocked) = (bosses_client(app).await, bosses_client(app).await);
            let path = format!("/mcp/clients/{blocked}");
            app.write("PATCH", &path, json!({ "blocked": true })).await.ok();
            let body = account_client(&boss(app).await, &everything);
            let robot = make(app, "/mcp/clients", body, "/id").await;
            let mut body = public_client(&fresh_key());
            body["scopes"] = json!(["mcp:write"]);
            let small = make(app, "/mcp/clients", body, "/id").await;
            let changed = |what, id: &str, body| call(what, "PATCH", format!("/mcp/clients/{id}"), body);
            let away = json!({ "redirectUris": ["https://mallory.example/back"] });
            vec![
                changed("point an admin's elsewhere", &client, away.clone()),
                changed("widen an admin's", &client, json!({ "scopes": everything })),
                changed("narrow an admin's", &client, json!({ "scopes": own })),
                changed(
                    "give an admin's keys",
                    &robot,
                    json!({ "jwksUri": "https://mallory.example/keys.json" }),
                ),
                changed(
                    "give an admin's grants",
                    &client,
                    json!({ "grantTypes": ["authorization_code"] }),
                ),
                changed("block an admin's", &client, json!({ "blocked": true })),
                changed("unblock an admin's", &blocked, json!({ "blocked": false })),
                changed("point one of little elsewhere", &small, away),
                changed("widen one of little", &small, json!({ "scopes": everything })),
            ]
        }
        "deleteHeadlessMcpClient" => {
            let path = format!("/mcp/clients/{}", bosses_client(app).await);
            vec![call("an admin's", "DELETE", path, Value::Null)]
        }
        "updateHeadlessResource" => {
            let resource = make_resource(app).await;
            let path = format!("/resources/{resource}");
            make(app, &format!("{path}/credentials"), credential_body(), "/id").await;
            let mut body = resource_body(&fresh_key());
            body["upstreamHost"] = "mallory.example".into();
            vec![call("send the secrets elsewhere", "PUT", path, body)]
        }
        "updateHeadlessResourceGateway" => {
            let gateway = json!({ "name": fresh_key(), "hostname": "gateway.internal", "enabled": true });
            let id = make(app, "/resource-gateways", gateway.clone(), "/id").await;
            let mut resource = resource_body(&fresh_key());
            resource["gatewayId"] = id.as_str().into();
            let resource = make(app, "/resources", resource, "/id").await;
            make(
                app,
                &format!("/resources/{resource}/credentials"),
                credential_body(),
                "/id",
            )
            .await;
            let mut body = gateway;
            body["hostname"] = "mallory.example".into();
            vec![call(
                "send the secrets elsewhere",
                "PUT",
                format!("/resource-gateways/{id}"),
                body,
            )]
        }
        "createHeadlessResourceCredential" | "updateHeadlessResourceCredential" => {
            let (path, user) = (
                format!("/resources/{}/credentials", make_resource(app).await),
                plain_user(app).await,
            );
            let mut body = credential_body();
            body["assignedTo"] = json!({ "users": [user], "groups": [], "serviceAccounts": [me.id] });
            let mut open = credential_body();
            open["default"] = true.into();
            if operation.starts_with("create") {
                return vec![
                    post("for the caller", path.clone(), body),
                    post("for everybody", path, open),
                ];
            }
            let id = make(app, &path, credential_body(), "/id").await;
            // The secret stays what it is.
            for body in [&mut body, &mut open] {
                body.as_object_mut().unwrap().remove("secret");
            }
            let path = format!("{path}/{id}");
            vec![
                call("for the caller", "PUT", path.clone(), body),
                call("for everybody", "PUT", path, open),
            ]
        }
        "createHeadlessSkillAcl" => {
            let skill = app.skill(&fresh_key()).await;
            let definition = json!({
                "id": fresh_key(), "skillId": skill, "enabled": true, "effect": "allow",
                "subjects": { "serviceAccounts": [me.id] },
            });
            let path = "/skill-acls".to_owned();
            vec![post(
                "allow the caller",
                path,
                json!({ "definition": definition }),
            )]
        }
        _ => Vec::new(),
    }
}

//! Managed configuration.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::{Context, Outcome};
use crate::traffic::maker::Maker;

const PROFILES: &str = "managed-config/profiles";

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessManagedConfigProfile", |maker| {
        let body = json!({ "name": maker.unique, "target": "codex", "autoPublish": "on" });
        Ok(maker.call("POST", PROFILES, body))
    }),
    keyed("updateHeadlessManagedConfigProfile", |maker| {
        let (path, _) = released(maker)?;
        Ok(maker.call(
            "PATCH",
            &path,
            json!({ "name": maker.unique, "onUnavailable": "fail_closed" }),
        ))
    }),
    keyed("archiveHeadlessManagedConfigProfile", |maker| {
        let (path, _) = released(maker)?;
        Ok(maker.bare("POST", &format!("{path}/archive")))
    }),
    keyed("restoreHeadlessManagedConfigProfile", |maker| {
        let (path, _) = released(maker)?;
        maker.write("POST", &format!("{path}/archive"), json!({}))?;
        Ok(maker.bare("POST", &format!("{path}/restore")))
    }),
    keyed("publishHeadlessManagedConfigRelease", |maker| {
        let (path, _) = released(maker)?;
        let body = json!({ "content": { "enforced": { "value": maker.unique } }, "automatic": false });
        let ready = maker.call("POST", &format!("{path}/releases"), body);
        Ok(ready.showing(format!("{path}/releases?limit=100")))
    }),
    keyed("rollbackHeadlessManagedConfigProfile", |maker| {
        let (path, first) = released(maker)?;
        let ready = maker.call(
            "POST",
            &format!("{path}/rollback"),
            json!({ "sourceReleaseId": first }),
        );
        Ok(ready.showing(format!("{path}/releases?limit=100")))
    }),
    keyed("reportHeadlessManagedConfigTarget", |maker| {
        let (path, first) = released(maker)?;
        let body = json!({
            "targetId": maker.unique, "releaseId": first,
            "contentDigest": format!("sha256:{}", "0".repeat(64)), "state": "applied",
        });
        let token = machine(maker)?;
        let mut ready = maker.call("POST", &format!("{path}/reports"), body);
        ready.request.token = Some(token);
        Ok(ready.showing(format!("{path}/targets?limit=100")))
    }),
    keyed("forgetHeadlessManagedConfigTarget", |maker| {
        let (path, first) = released(maker)?;
        let token = machine(maker)?;
        let report = json!({
            "targetId": maker.unique, "releaseId": first,
            "contentDigest": format!("sha256:{}", "0".repeat(64)), "state": "applied",
        });
        let mut request = maker
            .mutation("POST", &format!("{path}/reports"))
            .with_body(report);
        request.token = Some(token);
        maker.send(&request)?;
        let ready = maker.bare("DELETE", &format!("{path}/targets/{}", maker.unique));
        Ok(ready.showing(format!("{path}/targets?limit=100")))
    }),
];

/// The token of an account that machines report with: no admin has that scope who does not name it.
fn machine(maker: &mut Maker<'_>) -> Outcome<String> {
    let body = json!({
        "name": format!("machines of {}", maker.unique), "permissionRole": "auditor", "scopes": ["managed_config:pull"],
    });
    let made = maker.write("POST", "service-accounts", body)?;
    let token = made.pointer("/token/token").and_then(Value::as_str);
    token.map(str::to_owned).context("an account without a token")
}

/// A profile with two releases that say different things, and the id of the first one.
fn released(maker: &mut Maker<'_>) -> Outcome<(String, String)> {
    let body = json!({ "name": format!("for {}", maker.unique), "target": "generic_json" });
    let path = format!("{PROFILES}/{}", maker.make(PROFILES, body)?);
    let mut publish = |value: u32| -> Outcome<Value> {
        let body = json!({ "content": { "enforced": { "value": value } } });
        maker.write("POST", &format!("{path}/releases"), body)
    };
    let first = publish(2)?;
    publish(1)?;
    let first = first
        .pointer("/release/id")
        .and_then(Value::as_str)
        .context("a release without an id")?;
    Ok((path, first.to_owned()))
}

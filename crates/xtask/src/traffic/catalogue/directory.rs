//! People, groups, imports and identity links.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::Outcome;
use crate::traffic::maker::Maker;

const NDJSON: &str = "application/x-ndjson";

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessDirectoryUser", |maker| {
        let body = json!({ "loginName": maker.unique, "permissionRole": "viewer" });
        Ok(maker.call("POST", "directory/users", body))
    }),
    keyed("updateHeadlessDirectoryUser", |maker| {
        let path = user(maker)?;
        Ok(maker.call("PATCH", &path, json!({ "displayName": maker.unique })))
    }),
    keyed("deleteHeadlessDirectoryUser", |maker| {
        let path = user(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("suspendHeadlessDirectoryUser", |maker| {
        let path = user(maker)?;
        Ok(maker.bare("POST", &format!("{path}/suspend")))
    }),
    keyed("reactivateHeadlessDirectoryUser", |maker| {
        let path = user(maker)?;
        maker.write("POST", &format!("{path}/suspend"), json!({}))?;
        Ok(maker.bare("POST", &format!("{path}/reactivate")))
    }),
    keyed("createHeadlessDirectoryGroup", |maker| {
        Ok(maker.call("POST", "directory/groups", json!({ "name": maker.unique })))
    }),
    keyed("updateHeadlessDirectoryGroup", |maker| {
        let path = group(maker)?;
        Ok(maker.call("PATCH", &path, json!({ "description": maker.unique })))
    }),
    keyed("deleteHeadlessDirectoryGroup", |maker| {
        let path = group(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("addHeadlessDirectoryGroupMember", |maker| {
        let (group, user) = (group(maker)?, maker.user()?);
        let path = format!("{group}/members/{user}");
        Ok(maker
            .bare("PUT", &path)
            .showing(format!("{group}/members?limit=100")))
    }),
    keyed("removeHeadlessDirectoryGroupMember", |maker| {
        let (group, user) = (group(maker)?, maker.user()?);
        let path = format!("{group}/members/{user}");
        maker.write("PUT", &path, json!({}))?;
        Ok(maker
            .bare("DELETE", &path)
            .showing(format!("{group}/members?limit=100")))
    }),
    keyed("mapHeadlessDirectoryIdentity", |maker| {
        let body = json!({ "word": maker.unique, "userId": maker.user()? });
        Ok(maker
            .call("POST", "directory/identities", body)
            .showing("directory/identities?limit=100"))
    }),
    keyed("unmapHeadlessDirectoryIdentity", |maker| {
        let body = json!({ "word": maker.unique, "userId": maker.user()? });
        let id = maker.make("directory/identities", body)?;
        Ok(maker
            .bare("DELETE", &format!("directory/identities/{id}"))
            .showing("directory/identities?limit=100"))
    }),
    keyed("openHeadlessDirectoryImport", |maker| {
        end_imports(maker)?;
        Ok(maker.call(
            "POST",
            "directory/imports",
            json!({ "format": "jsonl", "mode": "merge" }),
        ))
    }),
    keyed("sendHeadlessDirectoryImportChunk", |maker| {
        let path = import(maker)?;
        let line = json!({ "type": "group", "name": maker.unique }).to_string();
        Ok(maker
            .content(&format!("{path}/chunks?sequence=1"), NDJSON, line.into_bytes())
            .showing(path))
    }),
    keyed("applyHeadlessDirectoryImport", |maker| {
        let path = import(maker)?;
        let mut chunk = maker.mutation("POST", &format!("{path}/chunks?sequence=1"));
        let line = json!({ "type": "user", "loginName": maker.unique }).to_string();
        chunk.content = Some((NDJSON, line.into_bytes()));
        maker.send(&chunk)?;
        Ok(maker.bare("POST", &format!("{path}/apply")))
    }),
    keyed("abortHeadlessDirectoryImport", |maker| {
        let path = import(maker)?;
        Ok(maker.bare("POST", &format!("{path}/abort")))
    }),
    keyed("settleHeadlessDirectoryHeldChanges", |maker| {
        let id = held(maker)?;
        let body = json!({ "apply": [id] });
        Ok(maker
            .call("POST", "directory/held-changes/settle", body)
            .showing("directory/held-changes?limit=100"))
    }),
    keyed("createHeadlessIdentityLink", |maker| {
        let body = link(maker)?;
        Ok(maker.call("POST", LINKS, body).showing(LINKED))
    }),
    keyed("allowHeadlessIdentityRelinking", |maker| {
        let body = json!({ "issuer": ISSUER, "userIds": [maker.user()?], "expiresInSeconds": 3600 });
        Ok(maker.call("POST", &format!("{LINKS}/allow"), body))
    }),
    keyed("removeHeadlessIdentityLinks", |maker| {
        let body = link(maker)?;
        maker.write("POST", LINKS, body)?;
        let body = json!({ "issuer": ISSUER, "subject": maker.unique });
        Ok(maker
            .call("POST", &format!("{LINKS}/remove"), body)
            .showing(LINKED))
    }),
    // The drill's store was never restored, so nobody is released; what is tried is the write of the answer, the event and
    // the entry of the audit log.
    keyed("releaseHeadlessRestoreHeld", |maker| {
        let body = json!({ "all": true, "confirm": true });
        Ok(maker.call("POST", "restore/release", body))
    }),
];

const ISSUER: &str = "https://login.example.com";
const LINKS: &str = "directory/identity-links";
const LINKED: &str = "directory/identity-links?limit=100";

/// A link of this point's name to a user of its own.
fn link(maker: &mut Maker<'_>) -> Outcome<Value> {
    Ok(json!({ "issuer": ISSUER, "subject": maker.unique, "userId": maker.user()? }))
}

/// Lets an account that may write the directory alone import a new address of somebody with a role; returns the id of the
/// held change.
fn held(maker: &mut Maker<'_>) -> Outcome<String> {
    let body = json!({ "loginName": maker.unique, "permissionRole": "viewer" });
    maker.make("directory/users", body)?;
    let narrow = json!({
        "name": format!("{}-sync", maker.unique), "permissionRole": "admin", "scopes": ["directory:write"],
    });
    let narrow = maker.write("POST", "service-accounts", narrow)?;
    let token = narrow.pointer("/token/token").and_then(|token| token.as_str());
    let path = import(maker)?;
    let mut chunk = maker.mutation("POST", &format!("{path}/chunks?sequence=1"));
    chunk.token = token.map(str::to_owned);
    let line =
        json!({ "type": "user", "loginName": maker.unique, "email": format!("{}@new.test", maker.unique) })
            .to_string();
    chunk.content = Some((NDJSON, line.into_bytes()));
    maker.send(&chunk)?;
    maker.write("POST", &format!("{path}/apply"), json!({}))?;
    let listed = maker.mutation("GET", "directory/held-changes?limit=100");
    let listed = maker.send(&listed)?;
    let held = listed["heldChanges"].as_array().and_then(|all| all.last());
    let id = held.and_then(|change| change["id"].as_str());
    id.map(str::to_owned)
        .ok_or_else(|| crate::failure::Failure::new("no change is held"))
}

fn user(maker: &mut Maker<'_>) -> Outcome<String> {
    Ok(format!("directory/users/{}", maker.user()?))
}

fn group(maker: &mut Maker<'_>) -> Outcome<String> {
    Ok(format!("directory/groups/{}", maker.group()?))
}

/// Aborts the import that is open, if one is: there may be one at a time.
fn end_imports(maker: &mut Maker<'_>) -> Outcome {
    let probe = maker
        .mutation("POST", "directory/imports")
        .with_body(json!({ "format": "jsonl", "mode": "merge" }));
    let answer = maker
        .connection
        .send(&probe)
        .map_err(|lost| crate::failure::Failure::new(lost.why))?;
    let body = answer.json()?;
    let open = body["importId"]
        .as_str()
        .or_else(|| body.pointer("/import/id").and_then(|id| id.as_str()));
    let open = open.unwrap_or_default().to_owned();
    maker
        .write("POST", &format!("directory/imports/{open}/abort"), json!({}))
        .map(drop)
}

fn import(maker: &mut Maker<'_>) -> Outcome<String> {
    end_imports(maker)?;
    let id = maker.make("directory/imports", json!({ "format": "jsonl", "mode": "merge" }))?;
    Ok(format!("directory/imports/{id}"))
}

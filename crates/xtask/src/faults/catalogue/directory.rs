//! People, groups and imports.

use serde_json::json;

use super::{Operation, keyed};
use crate::failure::Outcome;
use crate::faults::maker::Maker;

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
];

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

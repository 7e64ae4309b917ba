//! Create a resource with credentials, list them, rotate one, check one that lies elsewhere.

use serde_json::json;
use std::fs;
use std::path::Path;

use super::expect;
use super::guide::{Guide, text};
use crate::failure::{Context, Outcome};

/// The operator's part: where secrets that the server does not hold are looked for.
pub fn configuration(secrets: &Path) -> String {
    format!(
        "[[external_managers]]\nname = \"files\"\nkind = \"file\"\norganizations = {{ acme = {:?} }}\n",
        secrets.display().to_string()
    )
}

pub fn visit(guide: &mut Guide) -> Outcome {
    guide.says("A resource is a data system that agents use without holding its credentials.");
    let made = guide.changes(&[
        "resources",
        "create",
        "--name",
        "Orders",
        "--protocol",
        "postgres",
        "--upstream-host",
        "orders.acme.example",
        "--upstream-port",
        "5432",
    ])?;
    let resource = text(&made, "/id")?;
    let body = guide.home.join("credential.json");
    let secret = "correct horse battery staple";
    write(
        &body,
        &json!({ "name": "Reader", "kind": "username_password", "username": "reader", "default": true, "secret": secret }),
    )?;
    let body_file = body.display().to_string();
    let made = guide.changes(&["resource-credentials", "create", &resource, "--body", &body_file])?;
    let credential = text(&made, "/id")?;
    let listed = guide.does(&["resource-credentials", "list", &resource, "-o", "json"])?;
    expect(
        listed["items"][0]["id"] == json!(credential),
        "the credential is listed",
    )?;
    expect(!listed.to_string().contains(secret), "its secret is not")?;

    guide.says("A new secret is a rotation; a change without one keeps the secret.");
    let rotated = listed["items"][0]["rotatedAt"].clone();
    write(
        &body,
        &json!({ "name": "Reader", "kind": "username_password", "username": "reader", "default": true, "secret": "another one" }),
    )?;
    let after = guide.changes(&[
        "resource-credentials",
        "update",
        &resource,
        &credential,
        "--body",
        &body_file,
    ])?;
    expect(after["rotatedAt"] != rotated, "the rotation is dated")?;
    guide.changes(&["resource-credentials", "verify", &resource, &credential, "--wait"])?;

    guide.says("A secret may lie elsewhere: the server holds its place, and can prove that it is there.");
    write(
        &body,
        &json!({ "name": "Elsewhere", "kind": "username_password", "username": "writer", "managementMode": "external", "managerInstance": "files", "externalPath": "orders" }),
    )?;
    let made = guide.changes(&["resource-credentials", "create", &resource, "--body", &body_file])?;
    let elsewhere = text(&made, "/id")?;
    guide.changes(&["resource-credentials", "verify", &resource, &elsewhere, "--wait"])?;
    write(
        &body,
        &json!({ "name": "Nowhere", "kind": "username_password", "username": "writer", "managementMode": "external", "managerInstance": "files", "externalPath": "nothing" }),
    )?;
    let made = guide.changes(&["resource-credentials", "create", &resource, "--body", &body_file])?;
    let nowhere = text(&made, "/id")?;
    guide.is_refused(&[
        "resource-credentials",
        "verify",
        &resource,
        &nowhere,
        "--wait",
        "--reason",
        "a tour",
    ])?;
    Ok(())
}

fn write(file: &Path, body: &serde_json::Value) -> Outcome {
    fs::write(file, body.to_string()).context("cannot write a file")
}

//! Publish a profile, release twice, preview and roll back, pull it to a file.

use serde_json::{Value, json};
use std::fs;

use super::expect;
use super::guide::{Guide, text};
use crate::failure::{Context, Outcome};

#[expect(
    clippy::too_many_lines,
    reason = "one tour, read from its beginning to its end"
)]
pub fn visit(guide: &mut Guide) -> Outcome {
    guide.says("A profile is what one kind of client is told; each release of it stays.");
    let made = guide.changes(&[
        "managed-config",
        "create",
        "--name",
        "Engineering",
        "--target",
        "claude_code",
    ])?;
    let profile = text(&made, "/profile/id")?;
    let (one, two) = (guide.file("release-1.json"), guide.file("release-2.json"));
    let first = guide.changes(&["managed-config", "publish", &profile, "--body", &one])?;
    let first_id = text(&first, "/release/id")?;

    guide.says("Secret values are for accounts that are named for them, and no admin is: machines get one of their own.");
    let scopes = [
        "--scopes",
        "managed_config:pull",
        "--scopes",
        "managed_config:read",
    ];
    let account = [
        "service-accounts",
        "create",
        "--name",
        "laptops",
        "--permission-role",
        "auditor",
    ];
    let machines = guide.changes(&[&account[..], &scopes].concat())?;
    let token = text(&machines, "/token/token")?;

    guide.says("A machine pulls the signed release into the file that its client reads.");
    let file = guide.home.join("managed-settings.json");
    let to = file.display().to_string();
    let pull = ["managed-config", "pull", "--profile", "Engineering", "--to", &to];
    let said = guide.is_refused(&pull)?;
    expect(
        said.contains("managed_config:pull"),
        "an admin's token does not pull",
    )?;
    guide.does_as(&token, &pull)?;
    let written = read(&file)?;
    expect(
        written["permissions"]["deny"][1] == "Bash(curl:*)",
        "the first release is in the file",
    )?;

    guide.says("The second release is a mistake: it denies less. The preview of a rollback says so.");
    guide.changes(&["managed-config", "publish", &profile, "--body", &two])?;
    guide.does_as(&token, &pull)?;
    expect(
        read(&file)?["permissions"]["deny"][1] == Value::Null,
        "the second release is in the file",
    )?;
    let preview = guide.does(&[
        "managed-config",
        "rollback",
        &profile,
        "--source-release-id",
        &first_id,
    ])?;
    expect(preview["mode"] == "preview", "nothing was done")?;
    expect(
        preview["changesTotal"].as_i64().unwrap_or(0) > 0,
        "the preview shows changes",
    )?;
    expect(
        !preview.to_string().contains("\"1\""),
        "values of the environment are not shown",
    )?;
    let previewed = text(&preview, "/previewToken")?;

    guide.says("The preview binds what is done: exactly that, or nothing.");
    let rollback = [
        "managed-config",
        "rollback",
        &profile,
        "--source-release-id",
        &first_id,
        "--preview-token",
        &previewed,
        "--confirm",
    ];
    let done = guide.changes(&rollback)?;
    expect(
        done["mode"] == "completed" && done["created"] == json!(true),
        "a release was made",
    )?;
    expect(
        done["release"]["version"] == json!(3),
        "a rollback is a new version",
    )?;
    let said = guide.is_refused(&[&rollback[..], &["--reason", "a tour, once more"]].concat())?;
    expect(
        said.contains("412") || said.contains("preview"),
        "a preview that is past is refused",
    )?;
    guide.does_as(&token, &pull)?;
    expect(
        read(&file)? == written,
        "the file is what it was after the first release",
    )?;
    guide.does(&["managed-config", "verify", &to])?;
    let targets = guide.does(&["managed-config", "targets", &profile, "-o", "json"])?;
    expect(
        targets["targets"][0]["state"] == "verified",
        "the machine reported what it has",
    )?;
    Ok(())
}

fn read(file: &std::path::Path) -> Outcome<Value> {
    let text = fs::read_to_string(file).context("cannot read the pulled file")?;
    serde_json::from_str(&text).context("the pulled file is not JSON")
}

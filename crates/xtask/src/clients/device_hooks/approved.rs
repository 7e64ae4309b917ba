//! A call that needs somebody's yes, asked for by a real client: it waits, is approved by a person, passes once, and with another argument
//! not at all. An approval is of one session, so that the client goes on with its own.

use serde_json::json;

use super::device::Device;
use super::{Client, People, asked};
use crate::clients::Scene;
use crate::clients::administrator::text;
use crate::clients::program::Program;
use crate::clients::sign_in;
use crate::failure::{Context, Failure, Outcome};
use crate::process;

const SCOPES: [&str; 2] = ["mcp_approvals:read", "mcp_approvals:decide"];

pub fn run(scene: &Scene<'_>, clients: &[&Client], people: &People) -> Outcome {
    let mut administrator = scene.administrator();
    administrator.post(
        "content-policies",
        json!({ "definition": { "id": "ask-first", "name": "somebody looks first", "action": "require_approval",
            "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true, "approval": { "autoApproveOnRequest": false },
            "conditions": { "field": "tool.input.command", "op": "contains", "value": "mv -n" } } }),
    )?;
    administrator.post(
        "directory/users",
        json!({ "loginName": "berta@acme.example", "displayName": "berta", "email": "berta@acme.example", "permissionRole": "admin" }),
    )?;
    let person = signed_in(scene)?;
    let mut berta = administrator.with_token(person);
    let mut wrong = Vec::new();
    for client in clients {
        let whose = client.whose();
        let mut device = Device::make(scene, client, "enforce", people)?;
        let victim = device.victim();
        let (call, other) = (
            format!("mv -n {victim} {victim}.gone"),
            format!("mv -n {victim} {victim}.lost"),
        );
        let mut steps = Vec::new();
        let mut turn = 0;
        let mut step = |device: &Device, name: &str, command: &str, runs: bool| -> Outcome {
            for end in ["gone", "lost"] {
                drop(std::fs::remove_file(format!("{victim}.{end}")));
            }
            turn += 1;
            let (ran, said) = asked(scene, client, device, command, turn)?;
            let word = if ran { "ran" } else { "did not run" };
            steps.push(format!("{name}: {word}"));
            if ran != runs {
                wrong.push(format!(
                    "{} by {whose} settings: {name}: the call {word} (it said: {})",
                    client.word,
                    said.trim()
                ));
            }
            Ok(())
        };
        step(&device, "asked", &call, false)?;
        let waiting = berta.get("approvals?state=pending")?;
        let id = text(&waiting, "/approvals/0/id").context("the call does not wait for anybody")?;
        let digest = text(
            &berta.get(&format!("approvals/{id}"))?,
            "/approval/preview/bindingDigest",
        )?;
        berta.post(
            &format!("approvals/{id}/decision"),
            json!({ "decision": "approve", "bindingDigest": digest, "reason": "I know this file" }),
        )?;
        step(&device, "another argument", &other, false)?;
        step(&device, "the same call", &call, true)?;
        step(&device, "the same call again", &call, false)?;
        println!(
            "    an approval, {} by {whose} settings: {}",
            client.word,
            steps.join("; ")
        );
        // What waits now would be the first of the next client's.
        for waiting in berta.get("approvals?state=pending")?["approvals"]
            .as_array()
            .into_iter()
            .flatten()
        {
            administrator.post(&format!("approvals/{}/cancel", text(waiting, "/id")?), json!({}))?;
        }
        device.kill()?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(wrong.join("; ")))
}

/// Returns what the person who approves was given for the API.
fn signed_in(scene: &Scene<'_>) -> Outcome<String> {
    let mut administrator = scene.administrator();
    let body = json!({
        "name": "approvals", "redirectUris": [sign_in::REDIRECT], "grantTypes": ["authorization_code", "refresh_token"],
        "tokenEndpointAuthMethod": "none", "scopes": SCOPES,
    });
    let client = text(&administrator.post("mcp/clients", body)?, "/id")?;
    let mut command = scene.tools.script("traffic.mjs");
    process::without_settings(&mut command);
    command.env("PROVOST_MCP_URL", format!("{}/mcp", scene.origin()));
    let mut program = Program::start(&mut command)?;
    let line = json!({
        "signIn": client, "redirect": sign_in::REDIRECT, "login": "berta", "scopes": SCOPES,
        "resource": format!("{}/api/headless/v1", scene.origin()),
    });
    program.tell(&line.to_string())?;
    let said = program.object()?;
    program.ends()?;
    text(&said, "/token").context(format_args!("nobody signed in: {said}"))
}

//! What is in the sample organization, made by the commands that anybody types.

use super::Failure;
use super::commands::Typist;
use super::folder::DemoFolder;
use super::history;
use provost_kernel::Secret;
use provost_kernel::time::{Clock, SystemClock};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const RECORDING: &[u8] = include_bytes!("../../../../../docs/guide/data/agent-tool-calls-airline.jsonl");
/// Whose the recording is, and under which licence; it goes where the recording goes.
const RECORDING_NOTICE: &str = include_str!("../../../../../docs/guide/data/README.md");
const REFUNDS: &str = include_str!("../../../../../docs/guide/data/refunds-every-cancellation.json");
const STRICTER: &str = include_str!("sample/stricter.json");
pub const REPORT: &str = "backtest-report.html";

/// What there is when everything is made.
pub struct Sample {
    pub people: usize,
    pub policies: usize,
    pub events: usize,
    pub report: PathBuf,
    /// The candidate of the backtest.
    pub candidate: PathBuf,
    pub backtest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SamplePolicy {
    family: String,
    definition: Value,
}

#[derive(Deserialize)]
struct Machines {
    releases: Vec<Value>,
    targets: Vec<Value>,
}

/// An account: name, role, scopes, days until its token ends.
type Account = (&'static str, &'static str, &'static [&'static str], u64);

const GATEWAY: Account = ("gateway", "operator", &["policies:decide"], 90);
const PIPELINE: Account = (
    "ci-pipeline",
    "operator",
    &["policies:backtest", "policies:inspect", "policies:read"],
    5,
);
const LAPTOPS: Account = (
    "laptops",
    "auditor",
    &["managed_config:pull", "managed_config:read"],
    30,
);
const REPORTING: Account = ("old-reporting", "auditor", &["audit:read"], 60);

/// Fills the organization.
///
/// Errors: the command that was refused, and why.
pub async fn fill(typist: &Typist, folder: &DemoFolder, address: &str) -> Result<Sample, Failure> {
    let people = people(typist, folder).await?;
    let tokens = accounts(typist).await?;
    let policies = policies(typist).await?;
    let events = past(typist, folder).await?;
    machines(typist, &tokens.laptops).await?;
    for (token, client) in [(&tokens.gateway, "claude-code"), (&tokens.pipeline, "codex")] {
        session(address, token, client).await?;
    }
    present(typist).await?;
    let candidate = folder.write("stricter.json", STRICTER.as_bytes())?;
    let (report, saved) = (folder.file(REPORT), folder.file("backtest.json"));
    let run = [
        "backtests",
        "run",
        "--candidate",
        &candidate.to_string_lossy(),
        "--days",
        "30",
        "--name",
        "A stricter shell, and fewer approvals of refunds",
        "--html",
        &report.to_string_lossy(),
        "--json",
        &saved.to_string_lossy(),
    ];
    let run = typist.changes(&run).await?;
    Ok(Sample {
        people,
        policies,
        events,
        report,
        candidate,
        backtest: text(&run, "/id")?,
    })
}

async fn people(typist: &Typist, folder: &DemoFolder) -> Result<usize, Failure> {
    let table = include_str!("sample/people.csv");
    let file = folder.write("people.csv", table.as_bytes())?;
    typist
        .changes(&["directory", "import", &file.to_string_lossy()])
        .await?;
    Ok(table.lines().filter(|line| line.starts_with("user,")).count())
}

struct Tokens {
    gateway: Secret<String>,
    pipeline: Secret<String>,
    laptops: Secret<String>,
}

async fn accounts(typist: &Typist) -> Result<Tokens, Failure> {
    let (_, gateway) = account(typist, GATEWAY).await?;
    let (_, pipeline) = account(typist, PIPELINE).await?;
    let (_, laptops) = account(typist, LAPTOPS).await?;
    let (reporting, _) = account(typist, REPORTING).await?;
    typist
        .changes(&["service-accounts", "disable", &reporting])
        .await?;
    Ok(Tokens {
        gateway,
        pipeline,
        laptops,
    })
}

async fn account(
    typist: &Typist,
    (name, role, scopes, days): Account,
) -> Result<(String, Secret<String>), Failure> {
    let body = json!({
        "name": name, "permissionRole": role, "scopes": scopes, "expiresInSeconds": days * 86_400,
    });
    let made = typist
        .changes(&["service-accounts", "create", "--body", &body.to_string()])
        .await?;
    Ok((
        text(&made, "/serviceAccount/id")?,
        Secret::new(text(&made, "/token/token")?),
    ))
}

async fn policies(typist: &Typist) -> Result<usize, Failure> {
    // A policy names it.
    let orders = json!({
        "name": "Orders", "protocol": "postgres", "upstreamHost": "orders.acme.example", "upstreamPort": 5432,
    });
    typist
        .changes(&["resources", "create", "--body", &orders.to_string()])
        .await?;
    let mut all: Vec<SamplePolicy> = sample("policies", include_str!("sample/policies.json"))?;
    let refunds: Value = sample("refunds", REFUNDS)?;
    all.push(SamplePolicy {
        family: "content".into(),
        definition: refunds["definition"].clone(),
    });
    for policy in &all {
        let body = json!({ "definition": policy.definition });
        let group = format!("{}-policies", policy.family);
        typist
            .changes(&[&group, "create", "--body", &body.to_string()])
            .await?;
    }
    Ok(all.len())
}

async fn past(typist: &Typist, folder: &DemoFolder) -> Result<usize, Failure> {
    folder.write("recording/README.md", RECORDING_NOTICE.as_bytes())?;
    let calls = folder.write("recording/agent-tool-calls-airline.jsonl", RECORDING)?;
    let recorded = typist
        .reads(&[
            "history",
            "import",
            &calls.to_string_lossy(),
            "--format",
            "tool-calls",
            "--spread",
            "29d",
            "--source",
            "airline-agent",
        ])
        .await?;
    let (lines, count) = history::lines(SystemClock::new().now())?;
    let file = folder.write("history.jsonl", lines.as_bytes())?;
    typist
        .reads(&[
            "history",
            "import",
            &file.to_string_lossy(),
            "--source",
            "gateway-before",
        ])
        .await?;
    let recorded = recorded["accepted"].as_u64().unwrap_or(0);
    Ok(count + usize::try_from(recorded).unwrap_or(0))
}

async fn machines(typist: &Typist, token: &Secret<String>) -> Result<(), Failure> {
    let machines: Machines = sample("machines", include_str!("sample/machines.json"))?;
    let made = typist
        .changes(&[
            "managed-config",
            "create",
            "--name",
            "Laptops",
            "--target",
            "claude_code",
        ])
        .await?;
    let profile = text(&made, "/profile/id")?;
    let mut releases = Vec::new();
    for content in &machines.releases {
        let body = json!({ "content": content }).to_string();
        let published = typist
            .changes(&["managed-config", "publish", &profile, "--body", &body])
            .await?;
        let release = text(&published, "/release/id")?;
        // Who may pull sees the digest that the files have.
        let seen = typist
            .reads_as(&["managed-config", "release", &profile, &release], token)
            .await?;
        releases.push((release, text(&seen, "/release/contentDigest")?));
    }
    for target in machines.targets {
        let mut body = target;
        let place = body["release"]
            .as_u64()
            .and_then(|place| usize::try_from(place).ok());
        let release = place.and_then(|place| releases.get(place));
        let (release, digest) =
            release.ok_or_else(|| Failure::new("a machine of the sample has a release that is none"))?;
        if let Some(members) = body.as_object_mut() {
            members.remove("release");
        }
        body["releaseId"] = release.as_str().into();
        body["contentDigest"] = digest.as_str().into();
        typist
            .changes_as(
                &["managed-config", "report", &profile, "--body", &body.to_string()],
                token,
            )
            .await?;
    }
    Ok(())
}

/// Begins an MCP session, as a client does that comes with a service account's token. The server is this process.
async fn session(address: &str, token: &Secret<String>, client: &str) -> Result<(), Failure> {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": client, "version": "1" } },
    })
    .to_string();
    let head = Secret::new(format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        token.expose(),
        body.len()
    ));
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.expose().as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = asked
        .await
        .map_err(|error| Failure::new(format!("an MCP session could not begin: {error}")))?;
    if answer.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    let line = String::from_utf8_lossy(&answer);
    Err(Failure::new(format!(
        "an MCP session could not begin: {}",
        line.lines().next().unwrap_or("no answer")
    )))
}

/// Some questions that this server decides itself.
async fn present(typist: &Typist) -> Result<(), Failure> {
    let ask = |person: &str, occasion: &str, attributes: Value| {
        let mut attributes = attributes;
        attributes["identity.user_id"] = format!("{person}@acme.example").into();
        json!({ "occasion": occasion, "attributes": attributes })
    };
    let shell = |command: &str| json!({ "tool.id": "Bash", "tool.input": { "command": command } });
    let body = json!({ "events": [
        ask("ada", "pre_tool", shell("cargo test --workspace")),
        ask("bela", "pre_tool", shell("rm -rf build dist")),
        ask("emeka", "pre_tool", json!({ "tool.id": "Read", "tool.input": { "file_path": "shop/.env" } })),
        ask("hana", "prompt", json!({ "request.prompt": "Deploy it with AKIAIOSFODNN7EXAMPLE, please." })),
    ] });
    typist
        .reads(&["policies", "decide", "--body", &body.to_string()])
        .await
        .map(drop)
}

fn sample<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::new(format!("the {name} of the sample organization: {error}")))
}

fn text(value: &Value, pointer: &str) -> Result<String, Failure> {
    let found = value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| Failure::new(format!("the sample organization: the answer has no {pointer}")))
}

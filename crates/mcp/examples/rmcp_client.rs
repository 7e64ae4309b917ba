//! The protocol's Rust SDK as a client of a real server: `rmcp_client REVISION NAME`.
//!
//! The steps are those of `crates/xtask/clients/steps.mjs`, a line of JSON each; after `waiting` a line is read, and what
//! is called then must be refused. `cargo xtask clients sdks` runs it. The endpoint stands in `PROVOST_MCP_URL`, the token
//! in `PROVOST_TOKEN`.

#![expect(
    clippy::disallowed_methods,
    reason = "a client in a process of its own has neither the server's configuration nor its supervisor"
)]

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, GetPromptRequestParams, Implementation,
    ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, UnixSocketHttpClient};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use tokio::net::{TcpStream, UnixListener};

const READ: &str = "listHeadlessServiceAccounts";
const CREATE: &str = "createHeadlessDirectoryGroup";
const GET: &str = "getHeadlessDirectoryGroup";
const DELETE: &str = "deleteHeadlessDirectoryGroup";

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Client = RunningService<RoleClient, ClientConfig>;

fn main() -> Outcome {
    let mut words = std::env::args().skip(1);
    let (Some(revision), Some(name)) = (words.next(), words.next()) else {
        return Err("usage: rmcp_client REVISION NAME".into());
    };
    let socket = std::env::temp_dir().join(format!("rmcp-client-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(converse(&socket, &revision, name));
    std::fs::remove_file(&socket)?;
    if let Err(error) = &outcome {
        say("failed", json!({ "text": error.to_string() }));
    }
    outcome
}

fn say(step: &str, mut more: Value) {
    more["step"] = step.into();
    println!("{more}");
}

fn expect(is: bool, sentence: &str, seen: impl std::fmt::Debug) -> Outcome {
    if is {
        return Ok(());
    }
    Err(format!("expected that {sentence}, not {seen:?}").into())
}

/// The client without a library for HTTP speaks to a socket of files; this leads it to the server's own.
fn lead(socket: &Path, authority: &str) -> Outcome {
    let (listener, authority) = (UnixListener::bind(socket)?, authority.to_owned());
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let authority = authority.clone();
            tokio::spawn(async move {
                if let Ok(mut to) = TcpStream::connect(authority).await {
                    drop(tokio::io::copy_bidirectional(&mut from, &mut to).await);
                }
            });
        }
    });
    Ok(())
}

async fn converse(socket: &Path, revision: &str, name: String) -> Outcome {
    let uri = std::env::var("PROVOST_MCP_URL")?;
    let authority = uri.split('/').nth(2).ok_or("no authority")?;
    lead(socket, authority)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(uri.as_str());
    config.auth_header = Some(std::env::var("PROVOST_TOKEN")?);
    let http = UnixSocketHttpClient::new(socket.to_str().ok_or("no path")?, &uri);
    let mut info = ClientConfig::default();
    info.client_info = Implementation::new(name, "1.0");
    let mode = if revision == ProtocolVersion::V_2026_07_28.as_str() {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let client = serve_client_with_lifecycle(info, transport, mode).await?;
    let peer = client.peer_info().ok_or("the server says nothing of itself")?;
    let negotiated = peer.protocol_version.as_str();
    expect(negotiated == revision, "the revision is the one", negotiated)?;
    say("connected", json!({ "revision": negotiated }));
    tools(&client).await?;
    documents(&client).await?;
    is_refused(&client).await
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(request).await
}

fn change(key: &str, mut arguments: Value) -> Value {
    arguments["reason"] = "a client of others".into();
    arguments["idempotencyKey"] = format!("rmcp-{}-{key}", std::process::id()).into();
    arguments
}

async fn tools(client: &Client) -> Outcome {
    let tools = client.list_all_tools().await?;
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    expect(
        [READ, CREATE, GET, DELETE].into_iter().all(has),
        "they are listed",
        tools.len(),
    )?;
    say("tools", json!({ "count": tools.len() }));
    let read = call(client, READ, json!({ "limit": 5 })).await?;
    let accounts = read
        .structured_content
        .as_ref()
        .and_then(|body| body["serviceAccounts"].as_array());
    expect(
        accounts.is_some_and(|all| !all.is_empty()),
        "there are accounts",
        &read,
    )?;
    say("read", json!({}));
    let name = format!("rmcp {}", std::process::id());
    let made = call(client, CREATE, change("create", json!({ "name": name }))).await?;
    let group = made
        .structured_content
        .as_ref()
        .and_then(|body| body["group"]["id"].as_str());
    let group = group.ok_or("no group was made")?.to_owned();
    say("write", json!({ "id": group }));
    let arguments = json!({ "groupId": group });
    let unconfirmed = call(client, DELETE, change("unconfirmed", arguments.clone())).await?;
    expect(
        unconfirmed.is_error == Some(true),
        "it wants to be confirmed",
        &unconfirmed,
    )?;
    say("unconfirmed", json!({}));
    let confirmed = json!({ "groupId": group, "confirm": true });
    let deleted = call(client, DELETE, change("delete", confirmed)).await?;
    expect(deleted.is_error != Some(true), "the group is deleted", &deleted)?;
    let gone = call(client, GET, arguments).await?;
    expect(gone.is_error == Some(true), "the group is gone", &gone)?;
    say("deleted", json!({}));
    Ok(())
}

async fn documents(client: &Client) -> Outcome {
    let resources = client.list_all_resources().await?;
    let first = resources.first().ok_or("there are no documents")?;
    let read = client
        .read_resource(ReadResourceRequestParams::new(first.uri.clone()))
        .await?;
    expect(
        read.contents.len() == 1,
        "the document is the one",
        read.contents.len(),
    )?;
    say("resource", json!({ "count": resources.len(), "uri": first.uri }));
    let prompts = client.list_all_prompts().await?;
    let first = prompts.first().ok_or("there are no prompts")?;
    let names = first.arguments.iter().flatten();
    let values = names
        .map(|argument| (argument.name.clone(), "example".into()))
        .collect();
    let got = client
        .get_prompt(GetPromptRequestParams::new(first.name.clone()).with_arguments(values))
        .await?;
    expect(!got.messages.is_empty(), "the prompt has messages", &got)?;
    say("prompt", json!({ "count": prompts.len() }));
    Ok(())
}

async fn is_refused(client: &Client) -> Outcome {
    let arguments = json!({ "limit": 1 });
    call(client, READ, arguments.clone()).await?;
    say("waiting", json!({}));
    std::io::stdin().read_line(&mut String::new())?;
    let refused = call(client, READ, arguments).await;
    let Err(error) = refused else {
        return Err("the call of an ended session was answered".into());
    };
    let text = error.to_string();
    let is_said = ["401", "auth", "revoked"]
        .iter()
        .any(|word| text.to_lowercase().contains(word));
    expect(is_said, "the refusal says why", &text)?;
    say("refused", json!({ "text": text }));
    Ok(())
}

//! The protocol's own client, in both lifecycles.

use crate::support::{App, each_with};
use provost_kernel::kernel::Settings;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, GetPromptRequestParams, Implementation, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, UnixSocketHttpClient};
use rmcp::{RoleClient, ServiceError};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpStream, UnixListener};
use tokio::task::JoinHandle;

/// The client speaks to a socket of files; this leads it to the server's own.
struct Lead {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Lead {
    fn to(app: &App, name: &str) -> Self {
        let path = std::env::temp_dir().join(format!(
            "provost-mcp-{}-{name}-{}",
            std::process::id(),
            app.address.port()
        ));
        let _ = std::fs::remove_file(&path);
        let (listener, address) = (UnixListener::bind(&path).unwrap(), app.address);
        let task = tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(address).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                });
            }
        });
        Self { path, task }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn connect(
    lead: &Lead,
    token: &str,
    mode: ClientLifecycleMode,
) -> RunningService<RoleClient, ClientConfig> {
    let uri = "http://provost.test/mcp";
    let mut config = StreamableHttpClientTransportConfig::with_uri(uri);
    config.auth_header = Some(token.to_owned());
    let client = UnixSocketHttpClient::new(lead.path.to_str().unwrap(), uri);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let mut info = ClientConfig::default();
    info.client_info = Implementation::new("rmcp-test", "1.0");
    serve_client_with_lifecycle(info, transport, mode).await.unwrap()
}

#[test]
fn the_librarys_client_works_in_both_lifecycles() {
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    each_with("mcp_rmcp", 120, &settings, |app: Arc<App>| async move {
        let modern = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        for (name, mode) in [("old", ClientLifecycleMode::Initialize), ("new", modern)] {
            let lead = Lead::to(&app, name);
            let client = connect(&lead, &app.admin, mode).await;
            assert_eq!(
                client.peer_info().unwrap().server_info.as_ref().unwrap().name,
                "provost",
                "{name}"
            );
            let tools = client.list_all_tools().await.unwrap();
            assert_eq!(tools.len(), 130);
            let call = |tool: &'static str, arguments: serde_json::Value| {
                let params =
                    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
                client.call_tool(params)
            };
            let made = json!({ "id": name, "reason": "r", "idempotencyKey": name });
            let result = call("createThing", made).await.unwrap();
            assert_eq!(result.structured_content, Some(json!({ "things": [name] })));
            let result = call("getThing", json!({ "thingId": "none" })).await.unwrap();
            assert_eq!(result.is_error, Some(true));
            let unknown = call("noSuchThing", json!({})).await.unwrap_err();
            assert!(matches!(unknown, ServiceError::McpError(error) if error.code.0 == -32602));
            let read = client
                .read_resource(ReadResourceRequestParams::new("provost://guide"))
                .await
                .unwrap();
            assert_eq!(read.contents.len(), 1);
            let prompt = GetPromptRequestParams::new("explain")
                .with_arguments(json!({ "toolset": "audit" }).as_object().unwrap().clone());
            assert_eq!(client.get_prompt(prompt).await.unwrap().messages.len(), 1);
            client.cancel().await.unwrap();
        }
        let names: Vec<String> = app
            .clients("root")
            .await
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["rmcp-test"]);
    });
}

//! MCP sessions: what a list shows, how sessions end, and what a token may do afterwards.

mod ending;
mod life;
mod limits;
mod listing;
mod many;

use crate::support::App;
use provost_areas_access::mcp_sessions::{self, NewSession, SessionActor};
use provost_kernel::auth::ScopeSet;
use provost_kernel::credential::Credential;
use provost_kernel::db::{Statement, Tx};
use provost_kernel::{Code, OperationContext, Result, Timestamp, params};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const SESSIONS: &str = "/mcp/sessions";

/// Runs a unit of work in the organization.
async fn unit<T: Send + 'static>(
    app: &App,
    run: impl Fn(&mut OperationContext<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let place = Arc::new(Mutex::new(None));
    let sink = place.clone();
    let done = app.kernel.system(app.org(), Some("test.done"), move |ctx| {
        *sink.lock().unwrap() = Some(run(ctx)?);
        Ok(())
    });
    done.await?;
    let done = place.lock().unwrap().take();
    Ok(done.unwrap())
}

/// What a token of this grant is now.
async fn presented(app: &App, grant: &str) -> Option<Credential> {
    let grant = grant.to_owned();
    let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
        tx.query_opt(
            &mcp_sessions::LOOKUP,
            params![grant.as_str()],
            mcp_sessions::credential,
        )
    };
    app.kernel.read_system(read).await.unwrap()
}

/// The code with which a token of this grant is refused now.
async fn refusal(app: &App, grant: &str) -> Option<Code> {
    let found = presented(app, grant).await.unwrap();
    found.authenticate(app.now()).err().map(|error| error.code())
}

/// How many actors and clients the store knows by name.
async fn named(app: &App) -> (i64, i64) {
    const COUNT: &str =
        "SELECT (SELECT COUNT(*) FROM mcp_session_actors), (SELECT COUNT(*) FROM mcp_session_clients)";
    static NAMED: Statement = Statement {
        name: "named",
        sqlite: COUNT,
        postgres: COUNT,
        unscoped: Some("a test counts all of them"),
    };
    let read = |tx: &mut Tx<'_>| tx.query_opt(&NAMED, &[], |row| Ok((row.get(0)?, row.get(1)?)));
    app.kernel.read_system(read).await.unwrap().unwrap()
}

async fn seen(app: &App, id: &str) -> Value {
    app.get(&format!("{SESSIONS}/{id}")).await.ok()["session"].clone()
}

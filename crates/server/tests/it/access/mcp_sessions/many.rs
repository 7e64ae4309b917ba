//! Thousands of sessions: their end at once, and how the engines read their lists.

use super::*;
use crate::areas::directory::{run_jobs, user};
use crate::areas::mcp_sessions::{new_session, open};
use crate::support::each;
use provost_kernel::db::{Access, Conn, Engine, Location, Param, Statement};

/// The statements of the area.
fn own_statements() -> impl Iterator<Item = &'static Statement> {
    mcp_sessions::AREA
        .statements
        .iter()
        .flat_map(|list| list.iter().copied())
}

/// Proves MS-4, MS-9.
#[test]
fn the_end_of_five_thousand_holds_at_once() {
    each("sessions_many", |app: Arc<App>| async move {
        let mut grants = Vec::new();
        let ann = user(&app, "ann@acme.example").await;
        let new_session = |app: &App, client: &str| NewSession {
            actor: SessionActor::ConsoleUser {
                id: ann.clone(),
                display: "Ann".into(),
            },
            expires_at: app.now().plus_secs(30 * 86_400),
            ..new_session(app, client)
        };
        for chunk in 0..202 {
            // As many as may begin within a day (MS-7).
            if chunk > 0 && chunk % 40 == 0 {
                app.advance(86_400);
            }
            let news: Vec<NewSession> = (0..50)
                .map(|n| new_session(&app, if n % 2 == 0 { "doomed" } else { "spared" }))
                .collect();
            if chunk == 0 || chunk == 100 {
                grants.extend(news[..4].iter().map(|new| new.grant_key.clone()));
            }
            open(&app, news).await;
        }
        let all = app.get(SESSIONS).await;
        assert_eq!(
            (&all.ok()["total"], &all.json["totalIsExact"]),
            (&json!(1000), &json!(false))
        );
        texts(&app).await;
        // A connection is used on a thread of its own.
        std::thread::scope(|scope| scope.spawn(|| plans(&app)).join().unwrap());
        let path = format!("{SESSIONS}/revoke");
        let preview = app.write("POST", &path, json!({ "clientId": "doomed" })).await;
        assert_eq!(
            (&preview.ok()["mode"], &preview.json["count"]),
            (&json!("preview"), &json!(5050))
        );
        assert_eq!(preview.json["sessions"].as_array().unwrap().len(), 20);
        assert_eq!(refusal(&app, &grants[0]).await, None);
        app.advance(1);
        let done = json!({ "clientId": "doomed", "confirm": true });
        let done = app.write("POST", &path, done).await;
        assert_eq!(
            (&done.ok()["mode"], &done.json["count"]),
            (&json!("completed"), &json!(5050))
        );
        let at = app.now();
        // One of them is opened again, behind the end of the others and within its instant.
        let late = open(&app, vec![new_session(&app, "doomed")]).await.remove(0);
        let holds = |app: Arc<App>, grants: Vec<String>, late: String| async move {
            for (place, grant) in grants.iter().enumerate() {
                let expected = (place % 2 == 0).then_some(Code::TokenRevoked);
                assert_eq!(refusal(&app, grant).await, expected, "{place}");
            }
            let list = |status: &str| format!("{SESSIONS}?clientId=doomed&status={status}&limit=2");
            let active = app.get(&list("active")).await;
            assert_eq!(
                (&active.ok()["total"], &active.json["sessions"][0]["id"]),
                (&json!(1), &json!(late))
            );
            let revoked = app.get(&list("revoked")).await;
            assert_eq!(
                (&revoked.ok()["total"], &revoked.json["totalIsExact"]),
                (&json!(1000), &json!(false))
            );
            assert_eq!(revoked.json["sessions"][1]["revokedAt"], json!(at));
            assert_eq!(revoked.json["sessions"][1]["revokeReason"], "a test");
            let spared = app
                .get(&format!("{SESSIONS}?clientId=spared&status=active"))
                .await;
            assert_eq!(spared.ok()["totalIsExact"], false);
            // The 5 050th is the last one, and there is none behind it.
            let end =
                |offset: usize| format!("{SESSIONS}?clientId=spared&status=active&limit=3&offset={offset}");
            for (offset, there) in [(5047, 3), (5048, 2), (5050, 0)] {
                let page = app.get(&end(offset)).await;
                assert_eq!(page.ok()["sessions"].as_array().unwrap().len(), there);
            }
        };
        holds(app.clone(), grants.clone(), late.clone()).await;
        // A second end finds nothing left but the late one, and takes nothing from the first.
        app.advance(1);
        let again = json!({ "consoleUserId": ann });
        let again = app.write("POST", &path, again).await;
        assert_eq!(again.ok()["count"], 5051);
        run_jobs(&app).await;
        holds(app.clone(), grants, late).await;
        let events = app.events(0).await;
        let revoked = events
            .iter()
            .filter(|(kind, _)| kind == "mcp.session.revoked")
            .count();
        assert_eq!(revoked, 5050);
        assert_eq!(mcp_sessions::sweep(&app.kernel).await.unwrap(), 0);
    });
}

/// Proves MS-4.
#[test]
fn two_ends_in_one_instant_are_both_written_down() {
    each("sessions_two_ends", |app: Arc<App>| async move {
        // The job of an end comes first to the one that is first by name, its own or the other.
        for (round, pair) in [["first", "second"], ["second", "first"]].iter().enumerate() {
            let client = |name: &str| format!("{name} of {round}");
            // Of the one more than are written down at once; of the other fewer, which wait behind them all the same.
            let sizes = [600, 400];
            for (name, size) in pair.iter().zip(sizes) {
                for _ in 0..size / 50 {
                    open(&app, (0..50).map(|_| new_session(&app, &client(name))).collect()).await;
                }
            }
            for (name, size) in pair.iter().zip(sizes) {
                let body = json!({ "clientId": client(name), "confirm": true });
                let done = app.write("POST", &format!("{SESSIONS}/revoke"), body).await;
                assert_eq!(done.ok()["count"], size);
            }
            run_jobs(&app).await;
            let events = app.events(0).await;
            let told = events.iter().filter(|(kind, _)| kind == "mcp.session.revoked");
            assert_eq!(told.count(), 1_000 * (round + 1));
            // An account opens no more than 2 000 sessions a day.
            app.advance(86_401);
        }
    });
}

/// What more have than are counted is met newest first; of fewer every one is known.
async fn texts(app: &App) {
    let page = async |query: &str| {
        let page = app.get(&format!("{SESSIONS}?{query}")).await;
        let sessions = page.ok()["sessions"].as_array().unwrap();
        let ids: Vec<String> = sessions.iter().map(|one| one["id"].to_string()).collect();
        (ids, page.json["total"].clone(), page.json["totalIsExact"].clone())
    };
    for (named, plain) in [
        ("query=aNN&limit=7&offset=13", "limit=7&offset=13"),
        ("query=MCPS&limit=7&offset=13", "limit=7&offset=13"),
        // Both clients have it, and together more sessions than are counted.
        ("query=D&limit=7&offset=13", "limit=7&offset=13"),
        ("query=ed&limit=5&offset=9990", "limit=5&offset=9990"),
        // Behind this a page is read by its offset.
        ("query=ed&limit=7&offset=10096", "limit=7&offset=10096"),
        ("status=active&limit=7&offset=9994", "limit=7&offset=9994"),
        (
            "query=oomeD&clientId=doomed&status=active&limit=7&offset=13",
            "clientId=doomed&status=active&limit=7&offset=13",
        ),
        (
            "query=spare&status=active&limit=3&offset=5048",
            "clientId=spared&limit=3&offset=5048",
        ),
        (
            "query=ann&clientId=doomed&limit=9&offset=100",
            "clientId=doomed&limit=9&offset=100",
        ),
    ] {
        let (named, plain) = (page(named).await, page(plain).await);
        assert_eq!(named, plain);
        assert!(!named.0.is_empty());
    }
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Asks the engine how it would run a statement.
fn plan(conn: &mut Conn, engine: Engine, statement: &Statement, values: &[Param<'_>]) -> String {
    let asked: &'static Statement = Box::leak(Box::new(Statement {
        name: statement.name,
        sqlite: leaked(format!("EXPLAIN QUERY PLAN {}", statement.sqlite)),
        postgres: leaked(format!("EXPLAIN {}", statement.postgres)),
        unscoped: Some("a plan"),
    }));
    let column = if engine == Engine::Sqlite { 3 } else { 0 };
    let lines = conn.read(|tx| tx.query(asked, values, |row| row.get::<String>(column)));
    lines
        .unwrap_or_else(|e| panic!("{}: {:?}", statement.name, e.private()))
        .join("\n")
}

/// Returns a statement of lists.
fn find(name: &str) -> &'static Statement {
    let full = format!("provost_areas_access::mcp_sessions::find::{name}");
    let found = own_statements().find(|s| s.name == full);
    found.unwrap_or_else(|| panic!("{name}"))
}

/// Every exact filter is answered from its index, on a store with thousands of sessions.
fn plans(app: &App) {
    let location = app.location();
    let mut conn = Conn::open(&location, Access::Write).unwrap();
    let engine = match location {
        Location::Sqlite(_) => Engine::Sqlite,
        Location::Postgres(_) => Engine::Postgres,
    };
    if engine == Engine::Postgres {
        // As many more actors as make their index worth asking.
        let actors = format!(
            "INSERT INTO mcp_session_actors (organization_id, actor, display, service_account_id, console_user_id, search) SELECT '{}', n, 'Person ' || n, '', 'usr_' || n, 'person ' || n FROM generate_series(1, 3000) AS n",
            app.organization
        );
        conn.batch(&actors).unwrap();
        conn.batch("VACUUM ANALYZE mcp_sessions").unwrap();
        conn.batch("VACUUM ANALYZE mcp_session_actors").unwrap();
        // A table of some pages that are all wanted is read through; the question is whether an index could serve.
        conn.batch("SET enable_seqscan = off").unwrap();
    }
    plans_of_lists(&mut conn, engine, app);
    for (name, index) in [
        ("BEGUN_OF_USER", "mcp_sessions_by_user"),
        ("BEGUN_OF_ACCOUNT", "mcp_sessions_by_account"),
    ] {
        let full = format!("provost_areas_access::mcp_sessions::store::{name}");
        let counted = own_statements().find(|s| s.name == full).unwrap();
        let values = params![app.organization.as_str(), "somebody", 0_i64, 2000_i64].to_vec();
        let counted = plan(&mut conn, engine, counted, &values);
        assert!(counted.contains(index), "{name}: {counted}");
    }
    let admitted = own_statements().find(|s| s.name.ends_with("::ADMITTED")).unwrap();
    let values = params![app.organization.as_str(), "tok_1", "mcp tok_1 client"].to_vec();
    let admitted = plan(&mut conn, engine, admitted, &values);
    for index in ["mcp_sessions_by_grant", "mcp_sessions_by_token"] {
        assert!(admitted.contains(index), "{index}: {admitted}");
    }
}

/// Each range is read from an index that holds it together and in order, and a substring is looked for in the indexes of
/// substrings.
fn plans_of_lists(conn: &mut Conn, engine: Engine, app: &App) {
    let (org, now) = (app.organization.as_str(), app.now());
    let leads = |name: &str, lead: &str, value: &'static str| name.contains(lead).then_some(value);
    for (name, index) in [
        ("NEWEST", "mcp_sessions_by_state"),
        ("NEWEST_OF_KINDS", "mcp_sessions_by_kind"),
        ("NEWEST_OF_CLIENT", "mcp_sessions_by_client"),
        ("NEWEST_OF_CLIENT_KINDS", "mcp_sessions_by_client_kind"),
        ("NEWEST_OF_ACCOUNT", "mcp_sessions_by_account"),
        ("NEWEST_OF_USER", "mcp_sessions_by_user"),
    ] {
        let values = params![
            org,
            now,
            Param::Null,
            leads(name, "CLIENT", "doomed"),
            leads(name, "ACCOUNT", "sa_1"),
            leads(name, "USER", "usr_1"),
            leads(name, "KINDS", "console_user"),
            Param::Null,
            Param::Null,
            50_i64,
            -1_i64
        ];
        let plan = plan(conn, engine, find(name), values);
        let indexes = match engine {
            Engine::Sqlite => [
                format!("SEARCH s USING COVERING INDEX {index} ("),
                "SEARCH o USING INDEX mcp_sessions_by_expiry (".to_owned(),
            ],
            // Where nearly every session is of one kind, PostgreSQL reads them by their state just as well.
            Engine::Postgres if name.ends_with("KINDS") => [
                "using mcp_sessions_by_".to_owned(),
                "mcp_sessions_by_expiry".to_owned(),
            ],
            Engine::Postgres => [format!("using {index} on"), "mcp_sessions_by_expiry".to_owned()],
        };
        for index in indexes {
            // Of a user not everything stands in the index.
            let index = if name.ends_with("USER") {
                index.replace("COVERING ", "")
            } else {
                index
            };
            assert!(plan.contains(&index), "{name}: {index}: {plan}");
        }
        assert!(!plan.contains("Seq Scan on mcp_sessions"), "{name}: {plan}");
    }
    let mut values = params![org, now].to_vec();
    values.extend((0..7).map(|_| Param::Null));
    values.extend(
        params![1001_i64, "%no such text%", "%no such text%"]
            .iter()
            .cloned(),
    );
    let plan = plan(conn, engine, find("NAMED"), &values);
    let indexes = match engine {
        Engine::Sqlite => [
            "SCAN p VIRTUAL TABLE INDEX 0:L0",
            "SEARCH s USING INDEX mcp_sessions_by_actor (",
            "SEARCH s USING INDEX mcp_sessions_by_client",
            "(organization_id=? AND seq=?)",
        ],
        Engine::Postgres => [
            "mcp_session_actors_by_text",
            "mcp_sessions_by_part",
            "mcp_sessions_by_actor",
            "mcp_sessions_by_client",
        ],
    };
    for index in indexes {
        assert!(plan.contains(index), "NAMED: {index}: {plan}");
    }
}

//! Thousands of sessions: their end at once, and how the engines read their lists.

use super::*;
use crate::areas::directory::{run_jobs, user};
use crate::areas::mcp_sessions::{new_session, open};
use crate::support::each;
use provost_kernel::db::{Access, Conn, Engine, Location, Param, Statement, to_postgres};

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
            (&json!(10_000), &json!(false))
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
            assert_eq!(revoked.ok()["total"], 5050);
            assert_eq!(revoked.json["sessions"][1]["revokedAt"], json!(at));
            assert_eq!(revoked.json["sessions"][1]["revokeReason"], "a test");
            let spared = app
                .get(&format!("{SESSIONS}?clientId=spared&status=active"))
                .await;
            assert_eq!(spared.ok()["total"], 5050);
        };
        holds(app.clone(), grants.clone(), late.clone()).await;
        // A second end finds nothing left but the late one, and takes nothing from the first.
        app.advance(1);
        let again = json!({ "consoleUserId": ann });
        let again = app.write("POST", &path, again).await;
        assert_eq!(again.ok()["count"], 5051);
        run_jobs(&app).await;
        assert_counted(&app).await;
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
    let full = format!("provost_server::areas::mcp_sessions::pages::{name}");
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
    match engine {
        Engine::Sqlite => plans_of_ranges(&mut conn, app),
        Engine::Postgres => plans_of_merged(&mut conn, app),
    }
    for (name, index) in [
        ("BEGUN_OF_USER", "mcp_sessions_by_user"),
        ("BEGUN_OF_ACCOUNT", "mcp_sessions_by_account"),
    ] {
        let full = format!("provost_server::areas::mcp_sessions::store::{name}");
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
    let now = app.now();
    let unswept = params![app.organization.as_str(), now].to_vec();
    let unswept = plan(&mut conn, engine, find("UNSWEPT"), &unswept);
    assert!(unswept.contains("mcp_sessions_by_expiry"), "{unswept}");
    plans_of_names(&mut conn, engine, app);
}

/// What SQLite merges range by range is read from an index that holds all of it.
fn plans_of_ranges(conn: &mut Conn, app: &App) {
    for (of, index) in [
        ("", "mcp_sessions_by_state"),
        ("_OF_CLIENT", "mcp_sessions_by_client"),
        ("_OF_ACCOUNT", "mcp_sessions_by_account"),
        ("_OF_BOTH", "mcp_sessions_by_account_client"),
        ("_OF_KINDS", "mcp_sessions_by_kind"),
        ("_OF_CLIENT_KINDS", "mcp_sessions_by_client_kind"),
        ("_OF_ACCOUNT_KINDS", "mcp_sessions_by_account_kind"),
        ("_OF_BOTH_KINDS", "mcp_sessions_by_account_client"),
    ] {
        let by_kind = of.ends_with("KINDS");
        let client = (of.contains("CLIENT") || of.contains("BOTH")).then_some("doomed");
        let account = (of.contains("ACCOUNT") || of.contains("BOTH")).then_some("sa_1");
        let mut page = params![app.organization.as_str(), -1_i64, -1_i64, 50_i64, client, account].to_vec();
        let slots = if by_kind { 24 } else { 3 };
        page.extend((0..slots).map(|n| Param::from(if by_kind { i64::from(n % 2 == 0) } else { n })));
        let mut count = params![
            app.organization.as_str(),
            0_i64,
            0_i64,
            -1_i64,
            client,
            account,
            10_001_i64
        ]
        .to_vec();
        count.extend((0..if by_kind { 12 } else { 0 }).map(|_| Param::from(1_i64)));
        let mut asked = vec![("NEWEST", page)];
        // What is not an account's is not counted.
        if account.is_some() {
            asked.extend([("COUNT", count.clone()), ("MORE", count)]);
        }
        for (lead, values) in asked {
            let name = format!("{lead}{of}");
            let plan = plan(conn, Engine::Sqlite, find(&name), &values);
            let reads: Vec<&str> = plan
                .lines()
                .filter(|line| line.contains("mcp_sessions"))
                .collect();
            assert!(!reads.is_empty(), "{name}: {plan}");
            for line in reads {
                let is_index = line.contains(&format!("USING COVERING INDEX {index} ("));
                assert!(is_index, "{name}: {line}\n{plan}");
            }
        }
    }
}

/// A substring is looked for in the indexes of substrings, and leads to sessions by indexes alone.
fn plans_of_names(conn: &mut Conn, engine: Engine, app: &App) {
    let now = app.now();
    let named = [
        (
            "NAMED_BY_ACTOR",
            "mcp_session_actor_parts VIRTUAL TABLE INDEX",
            "mcp_session_actors_by_text",
        ),
        (
            "NAMED_BY_ACTOR",
            "USING COVERING INDEX mcp_sessions_by_actor (",
            "mcp_sessions_by_actor",
        ),
        (
            "NAMED_BY_ID",
            "mcp_session_parts VIRTUAL TABLE INDEX",
            "mcp_sessions_by_part",
        ),
        (
            "NAMED_BY_CLIENT",
            "USING COVERING INDEX mcp_sessions_by_client",
            "mcp_sessions_by_client",
        ),
        (
            "NAMED_BY_CLIENT_OF_ACCOUNT",
            "USING COVERING INDEX mcp_sessions_by_account_client (",
            "mcp_sessions_by_",
        ),
    ];
    for (name, sqlite, postgres) in named {
        let account = if name.contains("ACCOUNT") {
            Param::from("sa_1")
        } else {
            Param::Null
        };
        let (org, text) = (app.organization.as_str(), "%no such text%");
        let mut values = params![
            org,
            now,
            0_i64,
            2_i64,
            Param::Null,
            Param::Null,
            Param::Null,
            account,
            text,
            10_001_i64
        ]
        .to_vec();
        if !name.contains("CLIENT") {
            values.push(Param::from(if engine == Engine::Sqlite {
                "\"no \" AND \"suc\""
            } else {
                text
            }));
        }
        let plan = plan(conn, engine, find(name), &values);
        let index = if engine == Engine::Sqlite {
            sqlite
        } else {
            postgres
        };
        assert!(plan.contains(index), "{name}: {plan}");
    }
}

/// What PostgreSQL merges itself is planned once for all values, and read from the indexes in the order of the page.
fn plans_of_merged(conn: &mut Conn, app: &App) {
    conn.batch("SET plan_cache_mode = force_generic_plan").unwrap();
    let find = |name: &str| {
        let full = format!("provost_server::areas::mcp_sessions::merged_pages::{name}");
        let mut all = own_statements();
        all.find(|statement| statement.name == full).unwrap()
    };
    let explained = |conn: &mut Conn, statement: &Statement, values: &str| {
        conn.batch(&format!("PREPARE merged AS {}", to_postgres(statement.postgres)))
            .unwrap();
        let asked: &'static Statement = Box::leak(Box::new(Statement {
            name: statement.name,
            sqlite: "",
            postgres: leaked(format!("EXPLAIN EXECUTE merged({values})")),
            unscoped: Some("a plan"),
        }));
        let lines = conn.tx().query(asked, &[], |row| row.get::<String>(0)).unwrap();
        conn.batch("DEALLOCATE merged").unwrap();
        lines
    };
    for (name, indexes) in [
        ("TOTALS", ["mcp_sessions_by_expiry", "mcp_session_counts_pkey"]),
        ("PAGE", ["mcp_sessions_by_state", "Merge Append"]),
        ("PAGE_OF_CLIENT", ["mcp_sessions_by_client", "Merge Append"]),
        ("PAGE_OF_ACCOUNT", ["mcp_sessions_by_account", "Merge Append"]),
        ("PAGE_OF_BOTH", ["mcp_sessions_by_account", "Merge Append"]),
        ("PAGE_OF_KINDS", ["mcp_sessions_by_", "Nested Loop"]),
        (
            "PAGE_OF_CLIENT_KINDS",
            ["mcp_sessions_by_client_kind", "Nested Loop"],
        ),
        ("TOTALS_OF_ACCOUNT", ["mcp_sessions_by_account", "Limit"]),
        ("TOTALS_OF_BOTH", ["mcp_sessions_by_account", "Limit"]),
    ] {
        let others = match name {
            "TOTALS" | "TOTALS_OF_ACCOUNT" | "TOTALS_OF_BOTH" => "10001",
            _ => "50, 1000, 1050, ''",
        };
        let org = app.organization.as_str();
        let values = format!("'{org}', -1, NULL, NULL, NULL, NULL, NULL, NULL, {others}");
        let lines = explained(conn, find(name), &values);
        let plan = lines.join("\n");
        for index in indexes {
            assert!(plan.contains(index), "{name}: {index}: {plan}");
        }
        let reads = |line: &&String| line.contains(" on mcp_sessions");
        for line in lines.iter().filter(reads) {
            assert!(line.contains("Index"), "{name}: {line}\n{plan}");
        }
    }
    let fetched = explained(conn, find("FETCH_ALL"), "'1 2 3'").join("\n");
    assert!(
        fetched.contains("Index Scan using mcp_sessions_by_seq"),
        "{fetched}"
    );
    conn.batch("RESET plan_cache_mode").unwrap();
}

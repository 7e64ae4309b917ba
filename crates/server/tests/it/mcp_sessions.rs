//! MCP sessions: what a list shows, how sessions end, and what a token may do afterwards.

use crate::areas::directory::{run_jobs, user};
use crate::areas::mcp_sessions::{new_session, open};
use crate::support::{App, Dice, each, fresh_key};
use provost_kernel::auth::ScopeSet;
use provost_kernel::credential::{Admission, Credential, Kind, McpClient, Use};
use provost_kernel::db::{Access, Conn, Engine, Location, Param, Statement};
use provost_kernel::text::name_key;
use provost_kernel::{Code, Cx, Result, Timestamp, params};
use provost_server::areas::mcp_sessions::{self, NewSession, SessionActor};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

const SESSIONS: &str = "/mcp/sessions";

/// Runs a unit of work in the organization.
async fn unit<T: Send + 'static>(
    app: &App,
    run: impl Fn(&mut Cx<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let place = Arc::new(Mutex::new(None));
    let sink = place.clone();
    let done = app.kernel.system(app.org(), Some("test.done"), move |cx| {
        *sink.lock().unwrap() = Some(run(cx)?);
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
    found.judge(app.now()).err().map(|error| error.code())
}

async fn seen(app: &App, id: &str) -> Value {
    app.get(&format!("{SESSIONS}/{id}")).await.ok()["session"].clone()
}

fn encoded(text: &str) -> String {
    let escape = |byte: u8| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(escape).collect()
}

/// A session as the oracle remembers it.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    actor_type: &'static str,
    display: String,
    client: Option<String>,
    account: Option<String>,
    user: Option<String>,
    scopes: Vec<&'static str>,
    expires_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

impl Known {
    fn status(&self, now: Timestamp) -> &'static str {
        match self.revoked_at {
            Some(_) => "revoked",
            None if self.expires_at <= now => "expired",
            None => "active",
        }
    }
}

const CLIENTS: [&str; 5] = [
    "https://client.example/metadata.json",
    "100%_sure\\",
    "\"quoted\" AND *",
    "Straße",
    "plain",
];
const NAMES: [&str; 5] = ["Ann O'Hara", "İpek Yıldız", "STRASSE 5", "a_b%c", "zoë"];
const SCOPES: [&str; 6] = [
    "mcp:read",
    "mcp_approvals:read",
    "policies:read",
    "policies:write",
    "resources:connect",
    "fleet:read",
];

fn random_session(dice: &mut Dice, now: Timestamp) -> NewSession {
    let mut scopes: Vec<&str> = SCOPES.into_iter().filter(|_| dice.chance(3)).collect();
    if dice.chance(20) {
        scopes.clear();
    }
    let (account, user) = (format!("sa_{}", dice.below(4)), format!("usr_{}", dice.below(4)));
    let display = (*dice.pick(&NAMES)).to_owned();
    let actor = match dice.below(4) {
        0 => SessionActor::ServiceAccount { id: account, display },
        1 => SessionActor::Agent {
            console_user: None,
            service_account: Some(account),
            display,
        },
        2 => SessionActor::Agent {
            console_user: Some(user),
            service_account: None,
            display,
        },
        _ => SessionActor::ConsoleUser { id: user, display },
    };
    NewSession {
        grant_key: fresh_key(),
        actor,
        client_id: (!dice.chance(10)).then(|| (*dice.pick(&CLIENTS)).to_owned()),
        client_display: None,
        scopes: ScopeSet::of(&scopes),
        token_id: None,
        expires_at: now.plus_ms(1 + i64::try_from(dice.below(120_000)).unwrap()),
    }
}

fn known(id: String, new: &NewSession) -> Known {
    Known {
        id,
        actor_type: new.actor.word(),
        display: new.actor.display().to_owned(),
        client: new.client_id.clone(),
        account: new.actor.service_account().map(str::to_owned),
        user: new.actor.console_user().map(str::to_owned),
        scopes: new.scopes.to_list(),
        expires_at: new.expires_at,
        revoked_at: None,
    }
}

#[derive(Clone, Debug, Default)]
struct Asked {
    query: Option<String>,
    status: Option<&'static str>,
    actor_type: Option<&'static str>,
    account: Option<String>,
    client: Option<String>,
    toolset: Option<&'static str>,
    scope: Option<&'static str>,
}

impl Asked {
    fn random(dice: &mut Dice, all: &[Known]) -> Self {
        let mut asked = Self::default();
        if dice.chance(3) {
            let one = dice.pick(all).clone();
            let texts = [Some(one.id), Some(one.display), one.client, one.account, one.user];
            let texts: Vec<String> = texts.into_iter().flatten().collect();
            let chars: Vec<char> = dice.pick(&texts).chars().collect();
            let begin = dice.below(chars.len());
            let length = 1 + dice.below((chars.len() - begin).min(12));
            let text: String = chars[begin..begin + length].iter().collect();
            asked.query = Some(if dice.chance(2) { text.to_uppercase() } else { text });
        }
        if dice.chance(2) {
            asked.status = Some(dice.pick::<&str>(&["active", "revoked", "expired"]));
        }
        if dice.chance(4) {
            asked.actor_type =
                Some(dice.pick::<&str>(&["console_user", "service_account", "agent", "Agent"]));
        }
        if dice.chance(4) {
            asked.account = Some(format!("sa_{}", dice.below(5)));
        }
        if dice.chance(3) {
            asked.client = Some((*dice.pick(&CLIENTS)).to_owned());
        }
        if dice.chance(4) {
            asked.toolset =
                Some(dice.pick::<&str>(&["mcp", "mcp_approvals", "policies", "resource", "nothing"]));
        }
        if dice.chance(4) {
            asked.scope =
                Some(dice.pick::<&str>(&["mcp:read", "policies:read", "fleet:read", "MCP:READ", "fleet"]));
        }
        asked
    }

    fn fits(&self, one: &Known, now: Timestamp) -> bool {
        let has = |text: &Option<String>, part: &str| {
            text.as_ref().is_some_and(|text| name_key(text).contains(part))
        };
        let in_text = |query: &String| {
            let part = name_key(query);
            has(&Some(one.id.clone()), &part)
                || has(&Some(one.display.clone()), &part)
                || has(&one.client, &part)
                || has(&one.account, &part)
                || has(&one.user, &part)
        };
        let toolset = |toolset: &str| {
            one.scopes
                .iter()
                .any(|scope| scope.split(':').next() == Some(toolset))
        };
        self.query.as_ref().is_none_or(in_text)
            && self.status.is_none_or(|status| status == one.status(now))
            && self.actor_type.is_none_or(|word| word == one.actor_type)
            && (self.account.is_none() || self.account == one.account)
            && (self.client.is_none() || self.client == one.client)
            && self.toolset.is_none_or(toolset)
            && self.scope.is_none_or(|scope| one.scopes.contains(&scope))
    }

    fn path(&self, limit: usize, offset: usize) -> String {
        let mut path = format!("{SESSIONS}?limit={limit}&offset={offset}");
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                let _ = write!(path, "&{name}={}", encoded(value));
            }
        };
        add("query", self.query.as_deref());
        add("status", self.status);
        add("actorType", self.actor_type);
        add("serviceAccountId", self.account.as_deref());
        add("clientId", self.client.as_deref());
        add("toolset", self.toolset);
        add("scope", self.scope);
        path
    }
}

/// Compares one page with the naive filter. `all` is in the order of the ids.
async fn compare(app: &App, all: &[Known], asked: &Asked, limit: usize, offset: usize) {
    let now = app.now();
    let fitting: Vec<&Known> = all.iter().rev().filter(|one| asked.fits(one, now)).collect();
    let page = app.get(&asked.path(limit, offset)).await;
    let shown: Vec<(&str, &str)> = page.ok()["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    let word = |one: &Known| {
        if one.status(now) == "active" {
            "active"
        } else {
            "revoked"
        }
    };
    let expected: Vec<(&str, &str)> = fitting
        .iter()
        .skip(offset)
        .take(limit)
        .map(|one| (one.id.as_str(), word(one)))
        .collect();
    assert_eq!(shown, expected, "{asked:?} limit {limit} offset {offset}");
    assert_eq!(page.json["total"], fitting.len(), "{asked:?}");
    assert_eq!(page.json["totalIsExact"], true);
}

#[test]
fn every_list_equals_a_naive_filter() {
    each("sessions_oracle", |app: Arc<App>| async move {
        let mut dice = Dice::new("sessions_oracle");
        let mut all: Vec<Known> = Vec::new();
        let (other, token) = app.other_organization("Other").await;
        let stranger = app.view_of(other, token);
        open(&stranger, vec![new_session(&app, CLIENTS[0])]).await;
        for round in 0..12 {
            let news: Vec<NewSession> = (0..30).map(|_| random_session(&mut dice, app.now())).collect();
            let ids = open(&app, news.clone()).await;
            all.extend(ids.into_iter().zip(&news).map(|(id, new)| known(id, new)));
            all.sort_by(|a, b| a.id.cmp(&b.id));
            // Somebody is revoked, by the API.
            for _ in 0..3 {
                let one = dice.below(all.len());
                let reply = app
                    .write("POST", &format!("{SESSIONS}/{}/revoke", all[one].id), json!({}))
                    .await;
                assert_eq!(reply.ok()["session"]["status"], "revoked");
                if all[one].status(app.now()) == "active" {
                    all[one].revoked_at = Some(app.now());
                }
            }
            // Exactly at the end of somebody's life, or just before, or somewhen.
            let ends: Vec<Timestamp> = all
                .iter()
                .map(|one| one.expires_at)
                .filter(|at| *at > app.now())
                .collect();
            let step = match (ends.iter().min(), dice.below(3)) {
                (Some(next), 0) => next.as_ms() - app.now().as_ms(),
                (Some(next), 1) => next.as_ms() - app.now().as_ms() - 1,
                _ => i64::try_from(dice.below(20_000)).unwrap(),
            };
            app.clock.step_ms(step);
            if round % 4 == 3 {
                mcp_sessions::sweep(&app.kernel).await.unwrap();
            }
            for _ in 0..12 {
                let asked = Asked::random(&mut dice, &all);
                let (limit, offset) = (
                    1 + dice.below(100),
                    if dice.chance(2) {
                        0
                    } else {
                        dice.below(all.len() + 5)
                    },
                );
                compare(&app, &all, &asked, limit, offset).await;
            }
            // Every session is in exactly one class.
            for status in ["active", "revoked", "expired"] {
                let asked = Asked {
                    status: Some(status),
                    ..Asked::default()
                };
                compare(&app, &all, &asked, 100, 0).await;
            }
        }
    });
}

#[test]
fn a_substring_means_itself() {
    each("sessions_text", |app: Arc<App>| async move {
        let mut news = Vec::new();
        for client in CLIENTS {
            news.push(new_session(&app, client));
        }
        let ids = open(&app, news).await;
        let found = |text: &str| {
            let (app, path) = (app.clone(), format!("{SESSIONS}?query={}", encoded(text)));
            async move {
                let page = app.get(&path).await;
                let page = page.ok()["sessions"].as_array().unwrap().clone();
                let mut found: Vec<String> = page
                    .iter()
                    .map(|one| one["id"].as_str().unwrap().to_owned())
                    .collect();
                found.reverse();
                found
            }
        };
        for (text, expected) in [
            ("%", vec![1]),
            ("%_", vec![1]),
            ("0%_s", vec![1]),
            ("_", vec![0, 1, 2, 3, 4]),
            ("100_", vec![]),
            ("sure\\", vec![1]),
            ("\"quoted\" AND *", vec![2]),
            ("\" AND", vec![2]),
            ("AND *", vec![2]),
            ("quoted OR plain", vec![]),
            ("pla*", vec![]),
            ("STRASSE", vec![3]),
            ("straße", vec![3]),
            ("ss", vec![3]),
            ("metadata.json", vec![0]),
            ("metadata_json", vec![]),
            // Two members do not run into one another.
            ("nnplain", vec![]),
            ("annplain", vec![]),
            ("PLAIN", vec![4]),
        ] {
            let expected: Vec<String> = expected
                .into_iter()
                .map(|place: usize| ids[place].clone())
                .collect();
            let mut found = found(text).await;
            found.sort();
            let mut sorted = expected.clone();
            sorted.sort();
            assert_eq!(found, sorted, "{text}");
        }
        for bad in ["", "%00", "%1F", "a%0Ab"] {
            app.get(&format!("{SESSIONS}?query={bad}"))
                .await
                .refused(400, "invalid_request");
        }
        let long = "x".repeat(257);
        app.get(&format!("{SESSIONS}?query={long}"))
            .await
            .refused(400, "invalid_request");
        app.get(&format!("{SESSIONS}?status=ended"))
            .await
            .refused(400, "invalid_request");
        app.get(&format!("{SESSIONS}?limit=101"))
            .await
            .refused(400, "invalid_request");
        let nowhere = app.get(&format!("{SESSIONS}?offset=9007199254740991")).await;
        assert_eq!(
            (&nowhere.ok()["sessions"], &nowhere.json["total"]),
            (&json!([]), &json!(5))
        );
    });
}

#[test]
fn a_revocation_keeps_its_reason_and_is_said_once() {
    each("sessions_revoke", |app: Arc<App>| async move {
        let new = new_session(&app, "a client");
        let id = open(&app, vec![new.clone()]).await.remove(0);
        let before = seen(&app, &id).await;
        assert_eq!(before["status"], "active");
        assert_eq!(before["lastUsedAt"], before["issuedAt"]);
        assert!(before.get("revokedAt").is_none() && before.get("revokeReason").is_none());
        app.advance(5);
        let path = format!("{SESSIONS}/{id}/revoke");
        let call = |reason: &str| {
            let body = json!({ "reason": reason, "idempotencyKey": fresh_key() });
            app.request("POST", &path).json(body).send()
        };
        for word in [
            "expired",
            "user_suspended",
            "Superseded",
            "service_account_disabled",
        ] {
            call(word).await.refused(400, "invalid_request");
        }
        let first = call("laptop lost").await;
        let after = first.ok()["session"].clone();
        assert_eq!(after["status"], "revoked");
        assert_eq!(after["revokeReason"], "laptop lost");
        assert_eq!(after["revokedAt"], json!(app.now()));
        assert_eq!(refusal(&app, &new.grant_key).await, Some(Code::TokenRevoked));
        app.advance(5);
        assert_eq!(call("once more").await.ok()["session"], after);
        let events = app.events(0).await;
        let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(
            kinds.iter().filter(|kind| **kind == "mcp.session.issued").count(),
            1
        );
        assert_eq!(
            kinds
                .iter()
                .filter(|kind| **kind == "mcp.session.revoked")
                .count(),
            1
        );
        // Ended is ended, whatever the clock says.
        app.clock.step_ms(-3_000_000);
        assert_eq!(seen(&app, &id).await, after);
        assert_eq!(refusal(&app, &new.grant_key).await, Some(Code::TokenRevoked));
        // The same grant has this session for good.
        assert_eq!(open(&app, vec![new]).await, [id]);
    });
}

#[test]
fn a_session_ends_with_its_time_and_stays_ended() {
    each("sessions_expiry", |app: Arc<App>| async move {
        let new = new_session(&app, "a client");
        let id = open(&app, vec![new.clone()]).await.remove(0);
        let session_id = mcp_sessions::SessionId::from_text(&id);
        app.clock.step_ms(3_600_000 - 1);
        assert_eq!(seen(&app, &id).await["status"], "active");
        // A refresh lets it live longer, never shorter.
        let (extended, until) = (session_id.clone(), app.now().plus_secs(60));
        unit(&app, move |cx| mcp_sessions::extend(cx, &extended, until))
            .await
            .unwrap();
        let (extended, sooner) = (session_id.clone(), app.now().plus_secs(1));
        unit(&app, move |cx| mcp_sessions::extend(cx, &extended, sooner))
            .await
            .unwrap();
        app.clock.step_ms(60_000 - 1);
        assert_eq!(seen(&app, &id).await["status"], "active");
        app.clock.step_ms(1);
        let ended = seen(&app, &id).await;
        assert_eq!(
            (&ended["status"], &ended["revokeReason"], &ended["revokedAt"]),
            (&json!("revoked"), &json!("expired"), &json!(until))
        );
        let late = session_id.clone();
        let error = unit(&app, move |cx| {
            mcp_sessions::extend(cx, &late, until.plus_secs(60))
        })
        .await;
        assert_eq!(error.unwrap_err().code(), Code::AlreadyTerminal);
        let late = session_id.clone();
        assert!(
            !unit(&app, move |cx| mcp_sessions::end(cx, &late, "token_reuse"))
                .await
                .unwrap()
        );
        app.advance(30);
        assert_eq!(mcp_sessions::sweep(&app.kernel).await.unwrap(), 1);
        assert_eq!(mcp_sessions::sweep(&app.kernel).await.unwrap(), 0);
        assert_eq!(seen(&app, &id).await, ended);
        app.clock.step_ms(-200_000);
        assert_eq!(seen(&app, &id).await, ended);
        assert_eq!(refusal(&app, &new.grant_key).await, Some(Code::TokenExpired));
        let expired = app.events(0).await;
        let expired: Vec<&Value> = expired
            .iter()
            .filter(|(kind, _)| kind == "mcp.session.expired")
            .map(|(_, data)| data)
            .collect();
        assert_eq!(expired.len(), 1);
        // Kept for 90 days behind its end.
        app.clock.step_ms(200_000 - 30_000);
        app.clock.step_ms(90 * 86_400 * 1000);
        assert_eq!(mcp_sessions::retain(&app.kernel).await.unwrap(), 0);
        app.clock.step_ms(1);
        assert_eq!(mcp_sessions::retain(&app.kernel).await.unwrap(), 1);
        assert!(presented(&app, &new.grant_key).await.is_none());
    });
}

#[test]
fn a_use_is_noted_to_the_minute() {
    each("sessions_use", |app: Arc<App>| async move {
        let id = open(&app, vec![new_session(&app, "a client")]).await.remove(0);
        let issued = app.now();
        let used_at = |secs: i64| {
            let used = Use {
                kind: Kind::Session,
                organization: app.org(),
                token_id: id.clone(),
                at: issued.plus_secs(secs),
                source_ip: "192.0.2.7".parse().unwrap(),
            };
            unit(&app, move |cx| mcp_sessions::touch(cx, &used))
        };
        for (secs, shown) in [(59, 0), (60, 60), (100, 60), (30, 60), (120, 120), (90, 120)] {
            used_at(secs).await.unwrap();
            assert_eq!(
                seen(&app, &id).await["lastUsedAt"],
                json!(issued.plus_secs(shown)),
                "{secs}"
            );
        }
    });
}

#[test]
fn a_session_acts_for_who_is_there_and_active() {
    each("sessions_actors", |app: Arc<App>| async move {
        let (ann, bob) = (
            user(&app, "ann@acme.example").await,
            user(&app, "bob@acme.example").await,
        );
        let (bot, _) = app
            .account("bot", "operator", &["policies:read", "fleet:read"])
            .await;
        let of = |actor: SessionActor| NewSession {
            actor,
            scopes: ScopeSet::of(&["policies:read", "registry:install"]),
            ..new_session(&app, "a client")
        };
        let display = || "somebody".to_owned();
        let sessions = [
            of(SessionActor::ConsoleUser {
                id: ann.clone(),
                display: display(),
            }),
            of(SessionActor::Agent {
                console_user: Some(ann.clone()),
                service_account: None,
                display: display(),
            }),
            of(SessionActor::ServiceAccount {
                id: bot.clone(),
                display: display(),
            }),
            of(SessionActor::ConsoleUser {
                id: bob.clone(),
                display: display(),
            }),
        ];
        let ids = open(&app, sessions.to_vec()).await;
        // Without a role a user may do nothing.
        let found = presented(&app, &sessions[0].grant_key).await.unwrap();
        assert_eq!(
            (found.kind, found.principal_id.as_str(), found.role),
            ("console_user", ann.as_str(), None)
        );
        assert_eq!(found.token_id, ids[0]);
        let role = json!({ "permissionRole": "operator" });
        app.write("PATCH", &format!("/directory/users/{ann}"), role)
            .await
            .ok();
        let actor = presented(&app, &sessions[1].grant_key)
            .await
            .unwrap()
            .judge(app.now())
            .unwrap();
        assert_eq!(actor.kind, "agent");
        assert_eq!(
            actor.permission.scopes.to_list(),
            ["policies:read", "registry:install"]
        );
        let actor = presented(&app, &sessions[2].grant_key)
            .await
            .unwrap()
            .judge(app.now())
            .unwrap();
        assert_eq!(
            (actor.id.as_str(), actor.permission.scopes.to_list()),
            (bot.as_str(), vec!["policies:read"])
        );
        assert!(presented(&app, "no grant").await.is_none());
        // Suspended: refused at once, ended for good.
        app.write("POST", &format!("/directory/users/{ann}/suspend"), json!({}))
            .await
            .ok();
        for place in [0, 1] {
            assert!(refusal(&app, &sessions[place].grant_key).await.is_some());
            assert_eq!(seen(&app, &ids[place]).await["revokeReason"], "user_suspended");
        }
        app.write("POST", &format!("/directory/users/{ann}/reactivate"), json!({}))
            .await
            .ok();
        assert_eq!(
            refusal(&app, &sessions[0].grant_key).await,
            Some(Code::TokenRevoked)
        );
        assert_eq!(refusal(&app, &sessions[3].grant_key).await, None);
        let gone = app.request("DELETE", &format!("/directory/users/{bob}"));
        let gone = gone
            .header("x-reason", "a test")
            .header("idempotency-key", &fresh_key());
        gone.header("x-confirm", "true").send().await.ok();
        assert!(refusal(&app, &sessions[3].grant_key).await.is_some());
        app.write("POST", &format!("/service-accounts/{bot}/disable"), json!({}))
            .await
            .ok();
        assert!(refusal(&app, &sessions[2].grant_key).await.is_some());
        assert_eq!(
            seen(&app, &ids[2]).await["revokeReason"],
            "service_account_disabled"
        );
    });
}

#[test]
fn a_token_of_which_a_session_was_revoked_stays_out_of_mcp_until_it_is_rotated() {
    each("sessions_mcp", |app: Arc<App>| async move {
        let (bot, _) = app.account("bot", "viewer", &["policies:read"]).await;
        let token_id = |app: Arc<App>| {
            let bot = bot.clone();
            async move {
                app.seen(&bot).await["tokens"][0]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            }
        };
        let credential = |token: String| Credential {
            organization: app.org(),
            kind: "service_account",
            principal_id: bot.clone(),
            display: "bot".into(),
            role: provost_kernel::auth::Role::parse("viewer"),
            account_scopes: Some(ScopeSet::of(&["policies:read"])),
            token_scopes: None,
            enabled: true,
            token_id: token,
            prefix: String::new(),
            mac: vec![],
            pepper_id: String::new(),
            expires_at: app.now().plus_secs(86_400),
            revoked_at: None,
            self_rotated: false,
            replay_pending: false,
            last_used_at: None,
            item: None,
        };
        let client = |id: &str| McpClient {
            id: id.to_owned(),
            display: None,
        };
        let admit = |credential: &Credential, id: &str| {
            let (credential, client) = (credential.clone(), client(id));
            unit(&app, move |cx| {
                mcp_sessions::admit_at_mcp(&mut cx.tx(), &credential, &client)
            })
        };
        let join = |credential: &Credential, id: &str| {
            let (credential, client) = (credential.clone(), client(id));
            unit(&app, move |cx| {
                mcp_sessions::open_at_mcp(cx, &credential, &client)
            })
        };
        let session_of = |admission: Admission| match admission {
            Admission::Known { session_id, .. } => session_id,
            other => panic!("{other:?}"),
        };
        let first = credential(token_id(app.clone()).await);
        assert_eq!(admit(&first, "one").await.unwrap(), Admission::New);
        join(&first, "one").await.unwrap();
        join(&first, "one").await.unwrap();
        let one = session_of(admit(&first, "one").await.unwrap());
        assert_eq!(seen(&app, &one).await["scopes"], json!(["policies:read"]));
        assert_eq!(admit(&first, "two").await.unwrap(), Admission::New);
        // Disabled and enabled: a new session.
        for act in ["disable", "enable"] {
            app.write("POST", &format!("/service-accounts/{bot}/{act}"), json!({}))
                .await
                .ok();
        }
        assert_eq!(seen(&app, &one).await["revokeReason"], "service_account_disabled");
        assert_eq!(admit(&first, "one").await.unwrap(), Admission::New);
        join(&first, "one").await.unwrap();
        let again = session_of(admit(&first, "one").await.unwrap());
        assert_ne!(one, again);
        assert_eq!(seen(&app, &one).await["status"], "revoked");
        join(&first, "two").await.unwrap();
        // Revoked by somebody: no name opens the door.
        app.write("POST", &format!("{SESSIONS}/{again}/revoke"), json!({}))
            .await
            .ok();
        for name in ["one", "two", "three"] {
            assert_eq!(admit(&first, name).await.unwrap(), Admission::Refused, "{name}");
            assert_eq!(
                join(&first, name).await.unwrap_err().code(),
                Code::TokenRevoked,
                "{name}"
            );
        }
        app.write("POST", &format!("/service-accounts/{bot}/tokens"), json!({}))
            .await
            .ok();
        let second = credential(token_id(app.clone()).await);
        assert_ne!(first.token_id, second.token_id);
        assert_eq!(admit(&second, "one").await.unwrap(), Admission::New);
        let page = app
            .get(&format!("{SESSIONS}?serviceAccountId={bot}&clientId=two"))
            .await;
        assert_eq!(page.ok()["sessions"][0]["revokeReason"], "superseded");
    });
}

#[test]
fn only_admins_see_and_revoke_sessions() {
    each("sessions_roles", |app: Arc<App>| async move {
        let id = open(&app, vec![new_session(&app, "a client")]).await.remove(0);
        for role in ["operator", "auditor", "viewer"] {
            let (_, token) = app.account(&format!("an {role}"), role, &[]).await;
            app.request("GET", SESSIONS)
                .token(&token)
                .send()
                .await
                .refused(403, "role_forbidden");
        }
        let (_, reader) = app.account("a reader", "admin", &["mcp:read"]).await;
        app.request("GET", SESSIONS).token(&reader).send().await.ok();
        let trio = || json!({ "reason": "a test", "idempotencyKey": fresh_key(), "clientId": "a client", "confirm": true });
        let bulk = app
            .request("POST", &format!("{SESSIONS}/revoke"))
            .token(&reader)
            .json(trio());
        bulk.send().await.refused(403, "insufficient_scope");
        let preview = json!({ "clientId": "a client" });
        let preview = app
            .request("POST", &format!("{SESSIONS}/revoke"))
            .token(&reader)
            .json(preview);
        assert_eq!(preview.send().await.ok()["count"], 1);
        for body in [
            json!({}),
            json!({ "clientId": "a", "consoleUserId": "b" }),
            json!({ "clientId": "" }),
        ] {
            app.write("POST", &format!("{SESSIONS}/revoke"), body)
                .await
                .refused(400, "invalid_request");
        }
        let (other, token) = app.other_organization("Other").await;
        let stranger = app.view_of(other, token);
        stranger
            .get(&format!("{SESSIONS}/{id}"))
            .await
            .refused(404, "not_found");
        let foreign = stranger
            .write("POST", &format!("{SESSIONS}/{id}/revoke"), json!({}))
            .await;
        foreign.refused(404, "not_found");
        assert_eq!(seen(&app, &id).await["status"], "active");
    });
}

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
            ..new_session(app, client)
        };
        for chunk in 0..202 {
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

/// Every exact filter is answered from its index, on a store with thousands of sessions.
fn plans(app: &App) {
    let location = app.location();
    let mut conn = Conn::open(&location, Access::Write).unwrap();
    let engine = match location {
        Location::Sqlite(_) => Engine::Sqlite,
        Location::Postgres(_) => Engine::Postgres,
    };
    if engine == Engine::Postgres {
        conn.batch("VACUUM ANALYZE mcp_sessions").unwrap();
        // A table of some pages that are all wanted is read through; the question is whether an index could serve.
        conn.batch("SET enable_seqscan = off").unwrap();
    }
    let find = |name: &str| {
        let full = format!("provost_server::areas::mcp_sessions::pages::{name}");
        let found = mcp_sessions::PAGE_STATEMENTS.iter().find(|s| s.name == full);
        *found.unwrap_or_else(|| panic!("{name}"))
    };
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
        for (lead, values) in [("NEWEST", page), ("COUNT", count)] {
            let name = format!("{lead}{of}");
            let plan = plan(&mut conn, engine, find(&name), &values);
            // PostgreSQL names the table in sort keys as well.
            let scans = |line: &&str| line.contains("mcp_sessions") && !line.contains("Sort Key");
            let reads: Vec<&str> = plan.lines().filter(scans).collect();
            assert!(!reads.is_empty(), "{name}: {plan}");
            for line in reads {
                let is_index = match engine {
                    Engine::Sqlite => line.contains(&format!("USING COVERING INDEX {index} (")),
                    Engine::Postgres => line.contains("Index") && !line.contains("Seq Scan"),
                };
                assert!(is_index, "{name}: {line}\n{plan}");
            }
            // Nobody has an account here: PostgreSQL sees that any index of accounts is empty.
            if account.is_none() || engine == Engine::Sqlite {
                assert!(plan.contains(index), "{name}: {plan}");
            }
        }
    }
    let (now, none) = (app.now(), Param::Null);
    let unswept = params![app.organization.as_str(), now, Param::Null, Param::Null].to_vec();
    let unswept = plan(&mut conn, engine, find("UNSWEPT"), &unswept);
    assert!(unswept.contains("mcp_sessions_by_expiry"), "{unswept}");
    let text = if engine == Engine::Sqlite {
        "\"no such text\""
    } else {
        "%no such text%"
    };
    let mut search = params![app.organization.as_str(), now].to_vec();
    search.extend(std::iter::repeat_n(none.clone(), 6));
    search.extend(params![text, Param::Null, 50_i64, 0_i64].iter().cloned());
    let search = plan(&mut conn, engine, find("SEARCH"), &search);
    let index = if engine == Engine::Sqlite {
        "mcp_session_search VIRTUAL TABLE INDEX"
    } else {
        "mcp_sessions_by_text"
    };
    assert!(search.contains(index), "{search}");
}

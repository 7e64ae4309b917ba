//! Lists of sessions, compared with a naive filter.

use super::*;
use crate::areas::mcp_sessions::{new_session, open};
use crate::support::{Dice, each, fresh_key};
use provost_kernel::text::name_key;
use std::fmt::Write;

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
struct OracleSession {
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

impl OracleSession {
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

fn known(id: String, new: &NewSession) -> OracleSession {
    OracleSession {
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
struct ListRequest {
    query: Option<String>,
    status: Option<&'static str>,
    actor_type: Option<&'static str>,
    account: Option<String>,
    client: Option<String>,
    toolset: Option<&'static str>,
    scope: Option<&'static str>,
}

impl ListRequest {
    fn random(dice: &mut Dice, all: &[OracleSession]) -> Self {
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
            asked.toolset = Some(dice.pick::<&str>(&[
                "mcp",
                "mcp_approvals",
                "policies",
                "resource",
                "MCP",
                "read policies",
            ]));
        }
        if dice.chance(4) {
            asked.scope = Some(dice.pick::<&str>(&[
                "mcp:read",
                "policies:read",
                "fleet:read",
                "MCP:READ",
                "fleet",
                "policies:read policies:write",
            ]));
        }
        asked
    }

    fn fits(&self, one: &OracleSession, now: Timestamp) -> bool {
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
async fn compare(app: &App, all: &[OracleSession], asked: &ListRequest, limit: usize, offset: usize) {
    let now = app.now();
    let fitting: Vec<&OracleSession> = all.iter().rev().filter(|one| asked.fits(one, now)).collect();
    let page = app.get(&asked.path(limit, offset)).await;
    let shown: Vec<(&str, &str)> = page.ok()["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    let word = |one: &OracleSession| {
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

/// Proves MS-2, MS-3, MS-9.
#[test]
fn every_list_equals_a_naive_filter() {
    each("sessions_oracle", |app: Arc<App>| async move {
        let mut dice = Dice::new("sessions_oracle");
        let mut all: Vec<OracleSession> = Vec::new();
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
            app.advance_ms(step);
            if round % 4 == 3 {
                mcp_sessions::sweep(&app.kernel).await.unwrap();
            }
            for _ in 0..12 {
                let asked = ListRequest::random(&mut dice, &all);
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
                let asked = ListRequest {
                    status: Some(status),
                    ..ListRequest::default()
                };
                compare(&app, &all, &asked, 100, 0).await;
            }
        }
    });
}

/// Proves MS-3.
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

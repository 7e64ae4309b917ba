//! What a replay can repeat ends, and leaves nothing behind (R12, invariant ID-3, D4.8).

use crate::support::{App, Reply, each, fresh_key, number, with_trio};
use base64::Engine;
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::entropy::{Entropy, SystemEntropy};
use provost_kernel::keys::Keys;
use provost_server::background;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

provost_kernel::statements! {
    /// Every table of the store and its columns.
    COLUMNS = unscoped("a test reads everything") {
        sqlite: "SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' ORDER BY 1, 2",
        postgres: "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2",
    };
    /// What is kept of answers that showed a token.
    CELLS = unscoped("a test reads everything") "SELECT token_id, cell, cell_salt FROM idempotency_keys WHERE token_id IS NOT NULL";
}

/// Every byte that the store and the keys folder hold.
pub async fn everything(app: &App) -> Vec<u8> {
    let mut bytes = Vec::new();
    let folder = match app.location() {
        Location::Sqlite(path) => {
            let folder = path.parent().unwrap().to_owned();
            assert!(
                folder.join("store.sqlite-wal").exists(),
                "the log is read as well"
            );
            Some(folder)
        }
        Location::Postgres(_) => {
            bytes = rows(app).await;
            None
        }
    };
    let mut folders: Vec<_> = [Some(app.keys_dir.clone()), folder]
        .into_iter()
        .flatten()
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                bytes.extend(std::fs::read(path).unwrap());
            }
        }
    }
    assert!(bytes.len() > 1000);
    bytes
}

/// Every row of every table as text; bytes as hexadecimal digits and as they are.
async fn rows(app: &App) -> Vec<u8> {
    let columns: Vec<(String, String)> = app
        .kernel
        .read_system(|tx| tx.query(&COLUMNS, &[], |row| Ok((row.get(0)?, row.get(1)?))))
        .await
        .unwrap();
    assert!(
        columns
            .iter()
            .any(|(t, c)| t == "idempotency_keys" && c == "cell")
    );
    // Statements are declared; the tables of a store that a later migration makes are not known here.
    let mut tables: Vec<&String> = columns.iter().map(|(table, _)| table).collect();
    tables.dedup();
    let union: Vec<String> = tables
        .iter()
        .map(|t| format!("SELECT {t}::text FROM {t}"))
        .collect();
    let sql: &'static str = Box::leak(union.join(" UNION ALL ").into_boxed_str());
    let statement: &'static provost_kernel::db::Statement =
        Box::leak(Box::new(provost_kernel::db::Statement {
            name: "everything",
            sqlite: sql,
            postgres: sql,
            unscoped: Some("a test reads everything"),
        }));
    let location = app.location();
    let read = move || {
        let mut conn = Conn::open(&location, Access::Read).unwrap();
        conn.read(|tx| tx.query(statement, &[], |row| row.get::<String>(0)))
            .unwrap()
    };
    let rows = tokio::task::spawn_blocking(read).await.unwrap();
    rows.join("\n").into_bytes()
}

/// The forms in which a secret could stand somewhere.
fn forms(token: &str) -> Vec<Vec<u8>> {
    let secret = &token[token.len() - 49..token.len() - 6];
    assert_eq!(secret.len(), 43);
    let mut forms = Vec::new();
    for text in [token, secret] {
        forms.push(text.as_bytes().to_vec());
        forms.push(provost_kernel::audit::hex(text.as_bytes()).into_bytes());
        for shift in 0..3 {
            let padded = [&b"\0\0"[..shift], text.as_bytes()].concat();
            let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&padded);
            // What neighbours would change at both ends is left out.
            forms.push(encoded.as_bytes()[4..encoded.len() - 4].to_vec());
        }
    }
    // Half of a secret would be a leak as well.
    forms.push(secret.as_bytes()[..22].to_vec());
    forms.push(secret.as_bytes()[21..].to_vec());
    forms
}

pub async fn assert_nowhere(app: &App, token: &str) {
    assert_all_nowhere(app, &[token]).await;
}

/// Asserts that no form of these tokens' secrets is in the store, which is read once however many there are.
async fn assert_all_nowhere(app: &App, tokens: &[&str]) {
    app.settle().await;
    let (secrets, shown) = standing(&everything(app).await, tokens);
    assert!(secrets.is_empty(), "{secrets:?} is in the store");
    assert_eq!(shown, tokens.len(), "the search finds what is there");
}

/// Returns what stands in bytes of the secrets of tokens, and of how many tokens the public part does.
fn standing(bytes: &[u8], tokens: &[&str]) -> (Vec<String>, usize) {
    // What is sought, by its last bytes, which differ.
    let mut sought: HashMap<[u8; 8], Vec<(Vec<u8>, bool)>> = HashMap::new();
    for token in tokens {
        let secrets = forms(token).into_iter().map(|form| (form, true));
        let shown = (token.as_bytes()[..21].to_vec(), false);
        for (text, is_secret) in secrets.chain([shown]) {
            let end = *text.last_chunk().unwrap();
            sought.entry(end).or_default().push((text, is_secret));
        }
    }
    let (mut secrets, mut shown) = (Vec::new(), HashSet::new());
    for end in 8..=bytes.len() {
        let texts = sought.get(&bytes[end - 8..end]).into_iter().flatten();
        for (text, is_secret) in texts.filter(|(text, _)| bytes[..end].ends_with(text)) {
            if *is_secret {
                secrets.push(String::from_utf8_lossy(text).into_owned());
            } else {
                shown.insert(text);
            }
        }
    }
    (secrets, shown.len())
}

#[test]
fn every_form_of_a_secret_is_found_wherever_it_stands() {
    let tokens: Vec<String> = (10..30)
        .map(|n| {
            format!(
                "prov_sat_0123456789{n}{}{n}abcd",
                format!("secret{n:02}").repeat(6)[..43].to_owned()
            )
        })
        .collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    for token in &tokens {
        for form in forms(token) {
            for bytes in [form.clone(), [b"..", &form[..], b".."].concat()] {
                assert!(
                    !standing(&bytes, &tokens).0.is_empty(),
                    "{}",
                    String::from_utf8_lossy(&form)
                );
            }
        }
        assert_eq!(
            standing(&token.as_bytes()[..token.len() - 49], &tokens),
            (Vec::new(), 1)
        );
    }
}

/// How many rotations a test makes.
fn rotations() -> u64 {
    number("PROVOST_TEST_ROTATIONS", 3)
}

struct RotatedAccount {
    id: String,
    body: Value,
    token: String,
    token_id: String,
}

impl RotatedAccount {
    async fn make(app: &App, name: &str, body: Value) -> Self {
        let (id, _) = app.account(name, "auditor", &["audit:read"]).await;
        Self::of(app, id, body).await
    }

    /// Rotates accounts that were made before, all at one instant.
    async fn several(app: &App, name: &str) -> Vec<Self> {
        let mut accounts = Vec::new();
        for n in 0..rotations() {
            let name = format!("{name} {n}");
            accounts.push(app.account(&name, "auditor", &["audit:read"]).await.0);
        }
        let mut several = Vec::new();
        for id in accounts {
            several.push(Self::of(app, id, json!({})).await);
        }
        several
    }

    async fn of(app: &App, id: String, body: Value) -> Self {
        let body = with_trio(body, &fresh_key());
        let path = format!("/service-accounts/{id}/tokens");
        let first = app.request("POST", &path).json(body.clone()).send().await;
        let token = first.ok()["token"]["token"].as_str().unwrap().to_owned();
        let token_id = first.json["token"]["id"].as_str().unwrap().to_owned();
        Self {
            id,
            body,
            token,
            token_id,
        }
    }

    async fn again(&self, app: &App) -> Reply {
        let path = format!("/service-accounts/{}/tokens", self.id);
        app.request("POST", &path).json(self.body.clone()).send().await
    }

    async fn assert_ended(&self, app: &App) {
        assert_all_ended(app, std::slice::from_ref(self)).await;
    }
}

async fn assert_all_ended(app: &App, rotated: &[RotatedAccount]) {
    for one in rotated {
        let late = one.again(app).await;
        late.refused(409, "secret_no_longer_retrievable");
        assert_eq!(late.json["tokenId"], one.token_id.as_str());
        assert!(!late.text().contains(&one.token));
    }
    assert_tokens_nowhere(app, rotated).await;
    assert_cells_erased(app, rotated).await;
}

async fn assert_cells_erased(app: &App, rotated: &[RotatedAccount]) {
    let cells: Vec<(String, [Option<Vec<u8>>; 2])> = app
        .kernel
        .read_system(|tx| tx.query(&CELLS, &[], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?]))))
        .await
        .unwrap();
    let cells: BTreeMap<_, _> = cells.into_iter().collect();
    for one in rotated {
        assert_eq!(cells[&one.token_id], [None, None], "cell and salt are erased");
    }
}

async fn assert_tokens_nowhere(app: &App, rotated: &[RotatedAccount]) {
    let tokens: Vec<&str> = rotated.iter().map(|one| one.token.as_str()).collect();
    assert_all_nowhere(app, &tokens).await;
}

/// Proves AD-3, CX-3, SA-2.
#[test]
fn the_secret_stands_nowhere_while_it_can_be_replayed() {
    each("cell_live", |app: Arc<App>| async move {
        let rotated = RotatedAccount::several(&app, "a").await;
        for one in &rotated {
            assert_eq!(one.again(&app).await.ok()["token"]["token"], one.token.as_str());
        }
        assert_tokens_nowhere(&app, &rotated).await;
        let (_, created) = app.account("b", "auditor", &["audit:read"]).await;
        assert_nowhere(&app, &created).await;
        assert_nowhere(&app, &app.admin).await;
    });
}

#[test]
fn the_salt_of_a_cell_says_nothing_of_the_secret() {
    each("cell_salt", |app: Arc<App>| async move {
        // A salt that were drawn from the secret's own bytes would spell some of its characters.
        const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        for n in 0..20 {
            let rotated = RotatedAccount::make(&app, &format!("a{n}"), json!({})).await;
            let cells = app
                .kernel
                .read_system(|tx| {
                    tx.query(&CELLS, &[], |row| {
                        Ok((row.get::<String>(0)?, row.get::<Option<Vec<u8>>>(2)?))
                    })
                })
                .await
                .unwrap();
            let salt = cells
                .into_iter()
                .find(|(id, _)| *id == rotated.token_id)
                .unwrap()
                .1
                .unwrap();
            let masks: [&[u8; 16]; 2] = [&[0; 16], b"replay-cell-salt"];
            for mask in masks {
                let bytes = salt.iter().zip(mask).map(|(a, b)| a ^ b).filter(|b| *b < 248);
                let spelled: Vec<u8> = bytes.map(|b| ALPHABET[usize::from(b % 62)]).collect();
                let spelled = &spelled[spelled.len() - 5..];
                assert!(!rotated.token.as_bytes().windows(5).any(|w| w == spelled));
            }
        }
    });
}

/// Proves ID-3.
#[test]
fn first_use_ends_it() {
    each("cell_use", |app: Arc<App>| async move {
        let rotated = RotatedAccount::several(&app, "a").await;
        for one in &rotated {
            assert_eq!(app.used(&one.token).await.0, 200);
        }
        assert_all_ended(&app, &rotated).await;
    });
}

/// Proves ID-3.
#[test]
fn a_day_ends_it() {
    each("cell_day", |app: Arc<App>| async move {
        let rotated = RotatedAccount::several(&app, "a").await;
        app.clock.advance(Duration::from_millis(86_400_000 - 1));
        for one in &rotated {
            one.again(&app).await.ok();
        }
        app.clock.advance(Duration::from_millis(1));
        for one in &rotated {
            one.again(&app).await.refused(409, "secret_no_longer_retrievable");
        }
        background::retain(&app.kernel).await.unwrap();
        assert_all_ended(&app, &rotated).await;
        let day_keys = || {
            let files = std::fs::read_dir(&app.keys_dir).unwrap();
            let names = files.map(|f| f.unwrap().file_name().into_string().unwrap());
            names.filter(|n| n.contains("day-")).count()
        };
        assert_eq!(day_keys(), 1);
        app.advance(2 * 86_400);
        background::retain(&app.kernel).await.unwrap();
        assert_eq!(
            day_keys(),
            0,
            "no copy of a cell of that day can be opened any more"
        );
    });
}

#[test]
fn the_end_of_a_short_life_ends_it() {
    each("cell_expiry", |app: Arc<App>| async move {
        let rotated = RotatedAccount::make(&app, "a", json!({ "expiresInSeconds": 3600 })).await;
        app.clock.advance(Duration::from_millis(3_600_000 - 1));
        rotated.again(&app).await.ok();
        app.clock.advance(Duration::from_millis(1));
        background::retain(&app.kernel).await.unwrap();
        rotated.assert_ended(&app).await;
    });
}

/// Proves ID-3.
#[test]
fn revocation_supersession_disabling_and_deletion_end_it() {
    each("cell_ends", |app: Arc<App>| async move {
        for end in ["revoke", "rotate", "grace", "disable"] {
            let rotated = RotatedAccount::several(&app, end).await;
            for one in &rotated {
                let path = format!("/service-accounts/{}", one.id);
                let (path, body) = match end {
                    "revoke" => (
                        format!("{path}/tokens/{}/revoke", one.token_id),
                        json!({ "confirm": true }),
                    ),
                    "rotate" => (format!("{path}/tokens"), json!({})),
                    "grace" => (format!("{path}/tokens"), json!({ "gracePeriodSeconds": 60 })),
                    _ => (format!("{path}/disable"), json!({})),
                };
                app.write("POST", &path, body).await.ok();
            }
            assert_all_ended(&app, &rotated).await;
        }
        let rotated = RotatedAccount::several(&app, "delete").await;
        for one in &rotated {
            app.delete(&format!("/service-accounts/{}", one.id))
                .await
                .ok_status();
            one.again(&app).await.refused(404, "not_found");
        }
        assert_tokens_nowhere(&app, &rotated).await;
        assert_cells_erased(&app, &rotated).await;
    });
}

trait OkStatus {
    fn ok_status(&self);
}

impl OkStatus for Reply {
    fn ok_status(&self) {
        assert!(self.status.is_success(), "{}", self.text());
    }
}

#[test]
fn an_organization_can_do_without_replays() {
    each("cell_none", |app: Arc<App>| async move {
        app.token_settings(json!({ "secretReplaySeconds": 0 })).await;
        let rotated = RotatedAccount::make(&app, "a", json!({})).await;
        rotated.assert_ended(&app).await;
        assert_eq!(app.used(&rotated.token).await.0, 200);
        app.token_settings(json!({ "secretReplaySeconds": 5 })).await;
        let rotated = RotatedAccount::make(&app, "b", json!({})).await;
        app.clock.advance(Duration::from_millis(4_999));
        rotated.again(&app).await.ok();
        app.clock.advance(Duration::from_millis(1));
        background::retain(&app.kernel).await.unwrap();
        rotated.assert_ended(&app).await;
    });
}

#[test]
fn a_cell_opens_with_its_own_key_and_names_only() {
    let dir = std::env::temp_dir().join(format!("provost_cells_{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let keys = Keys::create(&dir, crate::support::START, &SystemEntropy).unwrap();
    let names: [&[u8]; 5] = [b"acme", b"sa_1", b"rotate", b"sa_2", b"sat_3"];
    let (salt, secret) = ([7; 16], b"the secret of the token".as_slice());
    let sealed = keys
        .seal_cell(20_777, &salt, &names, "the caller's own key", secret)
        .unwrap();
    let open = |day, salt: &[u8; 16], names: &[&[u8]], key: &str, sealed: &[u8]| {
        let opened = keys.open_cell(day, salt, names, key, sealed).unwrap();
        opened.map(|s| s.expose().clone())
    };
    let own = "the caller's own key";
    assert_eq!(
        open(20_777, &salt, &names, own, &sealed).unwrap().as_bytes(),
        secret
    );
    assert_eq!(open(20_777, &salt, &names, "the caller's own kez", &sealed), None);
    assert_eq!(open(20_777, &salt, &names, "", &sealed), None);
    assert_eq!(open(20_778, &salt, &names, own, &sealed), None);
    assert_eq!(open(20_777, &[8; 16], &names, own, &sealed), None);
    for place in 0..names.len() {
        let mut other = names;
        other[place] = b"other";
        assert_eq!(open(20_777, &salt, &other, own, &sealed), None);
    }
    // Names cannot run into each other.
    let shifted: [&[u8]; 5] = [b"acmes", b"a_1", b"rotate", b"sa_2", b"sat_3"];
    assert_eq!(open(20_777, &salt, &shifted, own, &sealed), None);
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(20_777, &salt, &names, own, &flipped), None);
    }
    std::fs::remove_file(dir.join("day-20777.key")).unwrap();
    assert_eq!(open(20_777, &salt, &names, own, &sealed), None);
    assert_ne!(SystemEntropy.seed(), [0; 32]);
    std::fs::remove_dir_all(&dir).unwrap();
}

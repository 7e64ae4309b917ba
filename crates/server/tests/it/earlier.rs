//! A store of an earlier build opens under this one, and what had ended in it stays ended.

use crate::support::{App, Contract, segments};
use flate2::read::GzDecoder;
use provost_areas_platform::audit::ForeignStorePolicy;
use provost_kernel::Timestamp;
use provost_kernel::auth::Role;
use provost_kernel::db::testing::locations;
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::expose::edge::Edge;
use provost_kernel::expose::http::BodyLimits;
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::time::ManualClock;
use provost_server::app;
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A copy of the store of one engine, as that build left it.
struct Earlier {
    location: Location,
    folder: PathBuf,
    facts: Value,
}

fn unpacked(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(file).unwrap())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// Unpacks the store; `more` is SQL for it, in which `{name}` is a text of its facts.
fn earlier(location: Location, test: &str, more: &str) -> Earlier {
    let engine = match location {
        Location::Sqlite(_) => "sqlite",
        Location::Postgres(_) => "postgres",
    };
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/0012")
        .join(engine);
    let folder = std::env::temp_dir().join(format!("provost-{test}-{engine}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let keys = folder.join("keys");
    std::fs::create_dir_all(&keys).unwrap();
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o700)).unwrap();
    for file in std::fs::read_dir(fixture.join("keys")).unwrap() {
        let file = file.unwrap();
        let copy = keys.join(file.file_name());
        std::fs::copy(file.path(), &copy).unwrap();
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let (location, script) = match location {
        Location::Sqlite(_) => {
            let file = folder.join("provost.db");
            std::fs::write(&file, unpacked(&fixture.join("provost.db.gz"))).unwrap();
            (Location::Sqlite(file), String::new())
        }
        postgres @ Location::Postgres(_) => {
            let script = String::from_utf8(unpacked(&fixture.join("store.sql.gz"))).unwrap();
            (postgres, script)
        }
    };
    let external = std::fs::read_to_string(fixture.join("external.sql")).unwrap();
    let facts = std::fs::read(fixture.join("facts.json")).unwrap();
    let facts: Value = serde_json::from_slice(&facts).unwrap();
    let id = |pointer: &str| facts.pointer(pointer).unwrap().as_str().unwrap();
    let more = more
        .replace("{robot}", id("/robot/id"))
        .replace("{left}", id("/left/id"));
    let mut conn = Conn::open(&location, Access::Write).unwrap();
    for sql in [script, external, more] {
        conn.batch(&sql)
            .unwrap_or_else(|error| panic!("{:?}", error.private()));
    }
    Earlier {
        location,
        folder,
        facts,
    }
}

impl Earlier {
    fn text(&self, pointer: &str) -> String {
        self.facts.pointer(pointer).unwrap().as_str().unwrap().to_owned()
    }

    fn open(&self) -> App {
        let now = Timestamp::from_ms(self.facts["now"].as_i64().unwrap()).plus_secs(3_600);
        let (clock, entropy) = (Arc::new(ManualClock::new(now)), Arc::new(SystemEntropy));
        let keys_dir = self.folder.join("keys");
        let settings = Settings {
            rate_limits: false,
            ..Settings::default()
        };
        let kernel = app::start(app::Installation {
            areas: &provost_server::areas::ALL,
            location: self.location.clone(),
            keys: Keys::open(&keys_dir).unwrap(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            settings,
            extras: Extras::default().with(segments(&keys_dir)),
        });
        let kernel = kernel.unwrap_or_else(|error| panic!("{error}: {:?}", error.private()));
        let reading = BodyLimits {
            max_body_bytes: 256 * 1024,
            timeout: Duration::from_secs(10),
        };
        let edge = Edge::new(app::edge_settings(), clock.clone(), entropy);
        App {
            machine: tokio::sync::OnceCell::new(),
            person: tokio::sync::Mutex::default(),
            machines: Arc::default(),
            router: edge.wrap(app::router(&kernel, reading)),
            contract: Arc::new(Contract::of(&kernel.registry)),
            clock,
            organization: "default".into(),
            admin_id: String::new(),
            admin: self.text("/admin"),
            keys_dir,
            location: self.location.clone(),
            kernel,
        }
    }
}

#[test]
fn a_store_of_an_earlier_build_opens_and_what_had_ended_stays_ended() {
    for store in locations("earlier") {
        let earlier = earlier(store.location(), "earlier", "");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let app = earlier.open();
            // It is given an id, as any that these keys served before there were ids.
            let started =
                provost_areas_platform::audit::verify_start(&app.kernel, ForeignStorePolicy::Refuse).await;
            started.unwrap();
            let lines = app.kernel.keys.checkpoint_lines().unwrap();
            assert!(lines.last().unwrap().contains("storeId"), "{lines:?}");
            let accounts = app.get("/service-accounts").await;
            assert_eq!(accounts.ok()["total"], 3);
            let robot = earlier.text("/robot/token");
            let event = |word: &str, command: &str| {
                json!({ "events": [{ "occasion": "pre_tool", "attributes": { "identity.user_id": word,
                    "tool.id": "Bash", "tool.input": { "command": command } } }] })
            };
            for (word, command, action) in [
                ("ada@acme.test", "rm -rf /", "block"),
                ("ADA@acme.test ", "rm -rf /", "block"),
                ("ada.l@mail.test", "rm -rf /", "block"),
                ("ada@acme.test", "ls", "allow"),
                ("zoe@acme.test", "rm -rf /", "allow"),
            ] {
                let asked = app
                    .request("POST", "/policies/decisions")
                    .token(&robot)
                    .json(event(word, command))
                    .send()
                    .await;
                assert_eq!(
                    asked.ok()["decisions"][0]["action"],
                    action,
                    "{word}: {}",
                    asked.text()
                );
            }
            // Who was disabled or suspended is so still.
            let left = app
                .request("GET", "/policies/versions")
                .token(&earlier.text("/left/token"))
                .send()
                .await;
            assert_eq!(left.status, 401, "{}", left.text());
            let zoe = app
                .get(&format!("/directory/users/{}", earlier.text("/zoe")))
                .await;
            assert_eq!(zoe.ok()["user"]["status"], "suspended");
            let sessions = app.get("/mcp/sessions?status=active").await;
            assert_eq!(sessions.ok()["total"], 0, "{}", sessions.text());
            let sessions = app.get("/mcp/sessions?status=revoked").await;
            assert_eq!(sessions.ok()["total"], 1, "{}", sessions.text());
            // Events of one instant are listed in the order in which that build listed them: each once.
            let history = app.get("/policies/history?source=gateway").await;
            assert_eq!(
                history.ok()["events"].as_array().unwrap().len(),
                5,
                "{}",
                history.text()
            );
            app.kernel.stop().await;
        });
        let _ = std::fs::remove_dir_all(&earlier.folder);
    }
}

/// Accounts that reported for machines, and what each held: the robot a list with a token whose list is shorter, the one that
/// left all of the role auditor (it is there again), the first admin all of its role. Beside them an account that reported and
/// has lost its right to fetch, one that never reported, a viewer, and a person.
const REPORTED: &str = "
    UPDATE service_accounts SET scopes = 'managed_config:read policies:decide' WHERE id = '{robot}';
    UPDATE service_account_tokens SET scopes = 'managed_config:read' WHERE service_account_id = '{robot}';
    UPDATE service_accounts SET permission_role = 'auditor', status = 'active', disabled_at = NULL WHERE id = '{left}';
    INSERT INTO service_accounts (organization_id, id, name, name_key, permission_role, scopes, status, created_at, updated_at)
    VALUES ('default', 'sa_01m88g00000000000000000001', 'Lost', 'lost', 'auditor', 'audit:read', 'active', 1, 1),
        ('default', 'sa_01m88g00000000000000000002', 'Silent', 'silent', 'auditor', 'managed_config:read', 'active', 1, 1),
        ('default', 'sa_01m88g00000000000000000003', 'Looks', 'looks', 'viewer', 'managed_config:read', 'active', 1, 1);
    INSERT INTO managed_config_profiles (organization_id, id, seq, name, name_key, target, auto_publish, on_unavailable,
        poll_interval_secs, status, current_release_id, created_at, updated_at)
    VALUES ('default', 'prof_01m88g00000000000000000001', 1, 'Laptops', 'laptops', 'generic_json', 'off', 'last_known', 3600,
        'active', NULL, 1, 1);
    INSERT INTO managed_config_targets (organization_id, profile_id, target_id, seq, name, release_id, content_digest,
        digest_since, state, message, first_reported_at, last_reported_at, reported_by_type, reported_by_id, drift_told)
    SELECT 'default', 'prof_01m88g00000000000000000001', id, CASE WHEN id = '{robot}' THEN 1 WHEN id = '{left}' THEN 2 WHEN
        name_key = 'lost' THEN 3 WHEN name_key = 'looks' THEN 4 ELSE 5 END, NULL, 'mcr_01m88g00000000000000000001', 'sha256:0',
        1, 'applied', NULL, 1, 1795581600000, 'service_account', id, false
    FROM service_accounts WHERE name_key <> 'silent';
    INSERT INTO managed_config_targets (organization_id, profile_id, target_id, seq, name, release_id, content_digest,
        digest_since, state, message, first_reported_at, last_reported_at, reported_by_type, reported_by_id, drift_told)
    VALUES ('default', 'prof_01m88g00000000000000000001', 'persons', 6, NULL, 'mcr_01m88g00000000000000000001', 'sha256:0',
        1, 'applied', NULL, 1, 1795581600000, 'console_user', 'usr_01m88g00000000000000000001', false);
";

/// What the program logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Takes the lines since the last time that name an account and the scope.
    fn about(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().filter(|line| line.contains("managed_config:pull"));
        lines.map(str::to_owned).collect()
    }
}

/// PF-4.
/// Proves PF-4.
#[test]
fn an_upgrade_proves_the_rows_that_are_there_once_and_says_so() {
    for store in locations("earlier_proofs") {
        let earlier = earlier(store.location(), "earlier_proofs", "");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        for _ in 0..2 {
            runtime.block_on(async {
                let app = earlier.open();
                assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
                let said = app
                    .kernel
                    .read_system(|tx| tx.query(&PROVEN, &[], |row| row.get::<String>(0)));
                let said = said.await.unwrap();
                assert_eq!(said.len(), 1, "once");
                let entry: Value = serde_json::from_str(&said[0]).unwrap();
                assert!(entry["count"].as_i64().unwrap() > 10, "{entry}");
                app.kernel.stop().await;
            });
        }
        let _ = std::fs::remove_dir_all(&earlier.folder);
    }
}

provost_kernel::statements! {
    /// What an upgrade says of the proofs that it wrote.
    PROVEN = unscoped("a test") "SELECT entry FROM audit_entries WHERE action = 'rights.proven'";
}

/// Proves MC-9.
#[test]
fn an_upgrade_gives_the_scope_to_accounts_that_reported_and_could_fetch_and_says_so() {
    let log = Log::default();
    let sink = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || sink.clone())
        .finish();
    // In a process of its own, as nextest gives each test one, it is the first.
    let _ = tracing::subscriber::set_global_default(subscriber);
    for store in locations("pull_upgrade") {
        let earlier = earlier(store.location(), "pull-upgrade", REPORTED);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let app = earlier.open();
            let said = log.about();
            let [robot, left] = ["/robot/id", "/left/id"].map(|pointer| earlier.text(pointer));
            let profile = "/managed-config/profiles/prof_01m88g00000000000000000001";
            let body = json!({ "content": { "enforced": { "env": { "A": "canary-in-the-clear" } } } });
            app.write("POST", &format!("{profile}/releases"), body).await.ok();
            let fetch = |token: String| {
                let call = app.request("GET", &format!("{profile}/current"));
                call.token(&token).send()
            };
            let scopes = async |id: &str| {
                let account = app.seen(id).await;
                let list: Vec<String> = serde_json::from_value(account["scopes"].clone()).unwrap();
                (account["allOfRole"] == true, list)
            };
            // The machines of these go on.
            for token in ["/robot/token", "/left/token"] {
                let reply = fetch(earlier.text(token)).await;
                assert_eq!(reply.ok()["redacted"], false, "{token}");
                assert!(reply.text().contains("canary-in-the-clear"), "{token}");
            }
            let (_, list) = scopes(&robot).await;
            assert_eq!(
                list,
                ["managed_config:pull", "managed_config:read", "policies:decide"]
            );
            let (all_of_role, list) = scopes(&left).await;
            let expected = Role::Auditor.grants().to_list();
            assert!(!all_of_role && list == expected, "{list:?}");
            // An admin's all of the role stays what it is, and shows nothing in the clear.
            let reply = fetch(app.admin.clone()).await;
            assert_eq!(reply.ok()["redacted"], true);
            let accounts = app.get("/service-accounts?limit=100").await;
            let admins = accounts.ok()["serviceAccounts"].as_array().unwrap().iter();
            let admins: Vec<_> = admins.filter(|one| one["permissionRole"] == "admin").collect();
            assert!(admins.len() == 1 && admins[0]["allOfRole"] == true, "{admins:?}");
            assert!(!admins[0]["scopes"].to_string().contains("managed_config:pull"));
            let admin = admins[0]["id"].as_str().unwrap().to_owned();
            for (id, held) in [
                ("sa_01m88g00000000000000000001", "audit:read"),
                ("sa_01m88g00000000000000000002", "managed_config:read"),
                ("sa_01m88g00000000000000000003", "managed_config:read"),
            ] {
                assert_eq!(scopes(id).await.1, [held], "{id}");
            }
            // The log names each whose machines go on or stop, and nobody else.
            let person = "usr_01m88g00000000000000000001".to_owned();
            for id in [&robot, &left, &admin, &person] {
                let lines: Vec<_> = said.iter().filter(|line| line.contains(id.as_str())).collect();
                assert_eq!(lines.len(), 1, "{id}: {said:?}");
                assert!(lines[0].contains("WARN"), "{lines:?}");
            }
            assert_eq!(said.len(), 4, "{said:?}");

            // What was taken away afterwards is not given by another start.
            let body = json!({ "scopes": ["managed_config:read"] });
            app.write("PATCH", &format!("/service-accounts/{robot}"), body)
                .await
                .ok();
            app.kernel.stop().await;
            let app = earlier.open();
            assert_eq!(app.seen(&robot).await["scopes"], json!(["managed_config:read"]));
            assert_eq!(log.about(), [""; 0]);
            let call = app.request("GET", &format!("{profile}/current"));
            let reply = call.token(&earlier.text("/robot/token")).send().await;
            assert_eq!(reply.ok()["redacted"], true);
            app.kernel.stop().await;
        });
        let _ = std::fs::remove_dir_all(&earlier.folder);
    }
}

//! A running kernel over a real store, with an account of every role, for the tests of the areas that read.

use provost_kernel::announcement::Answers;
use provost_kernel::area::{Area, Areas};
use provost_kernel::audit::{self, AuditRecord, Head};
use provost_kernel::auth::{OrganizationId, Origin, Role};
use provost_kernel::credential::{Credential, Reach, Schemes, TokenScheme, Use};
use provost_kernel::db::testing::{TestStore, migrated};
use provost_kernel::db::{Call, Conn, Location, Param, Row, Statement};
use provost_kernel::dispatch::{self, Request};
use provost_kernel::entropy::{SeededEntropy, UnitRng};
use provost_kernel::fence::Readers;
use provost_kernel::kernel::{Extras, Parts, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::operation::Registry;
use provost_kernel::second_person::NamedWords;
use provost_kernel::time::ManualClock;
use provost_kernel::token::{self, Form};
use provost_kernel::{Error, Kernel, OperationContext, Result, Secret, Timestamp};
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

provost_kernel::statements! {
    /// Makes an organization.
    ADD_ORGANIZATION = "INSERT INTO organizations (organization_id, name, created_at) VALUES (?1, ?1, ?2)";
    /// Makes an account of all its role's scopes.
    ADD_ACCOUNT = "INSERT INTO service_accounts (organization_id, id, name, name_key, permission_role, status, created_at, updated_at) VALUES (?1, ?2, ?2, ?2, ?3, 'active', ?4, ?4)";
    /// Makes a token.
    ADD_TOKEN = "INSERT INTO service_account_tokens (organization_id, id, service_account_id, lookup_id, name, token_prefix, mac, pepper_id, scopes, created_at, updated_at, expires_at, self_rotated, replay_pending) VALUES (?1, ?2, ?3, ?4, ?2, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?11)";
    /// Finds a token.
    LOOKUP = unscoped("a token names its organization") "SELECT t.organization_id, a.id, a.permission_role, t.scopes, t.id, t.token_prefix, t.mac, t.pepper_id, t.expires_at FROM service_account_tokens t JOIN service_accounts a ON a.organization_id = t.organization_id AND a.id = t.service_account_id WHERE t.lookup_id = ?1";
}

provost_kernel::event_data! {
    /// Something with a number.
    Numbered {
        /// The number.
        number: i64,
    } like r#"{"number":1}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, ["action.0", "action.1", "action.2", "test.emitted", "test.grew", "test.went_back"];
    targets {
        THING = "thing" => Readers::Everybody;
        HIDDEN = "hidden thing" => Readers::Overseers;
    }
    events {
        /// Something happened.
        HAPPENED: Numbered = "test.happened" => Readers::Everybody;
        /// Something happened that not everybody reads.
        HIDDEN_HAPPENED: Numbered = "test.hidden" => Readers::Overseers;
    }
}

/// What somebody with access to the store can do to a chain.
pub(crate) mod statements {
    provost_kernel::statements! {
        /// Replaces an entry's hash.
        EDIT_HASH = "UPDATE audit_entries SET hash = ?3 WHERE organization_id = ?1 AND seq = ?2";
        /// Removes the entries after a place.
        CUT = "DELETE FROM audit_entries WHERE organization_id = ?1 AND seq > ?2";
        /// Removes the checkpoints of a chain.
        CUT_CHECKPOINTS = "DELETE FROM audit_checkpoints WHERE organization_id = ?1";
        /// Removes the nodes of a chain.
        CUT_NODES = "DELETE FROM audit_nodes WHERE organization_id = ?1";
        /// Removes the events after a place.
        CUT_EVENTS = "DELETE FROM outbox WHERE organization_id = ?1 AND sequence > ?2";
        /// Reads a head.
        READ_HEAD = "SELECT seq, hash, mac, event_sequence FROM chain_heads WHERE organization_id = ?1";
        /// Replaces a head.
        SET_HEAD = "UPDATE chain_heads SET seq = ?2, hash = ?3, mac = ?4, event_sequence = ?5 WHERE organization_id = ?1";
        /// Replaces a head's MAC.
        SET_MAC = "UPDATE chain_heads SET mac = ?2 WHERE organization_id = ?1";
    }
}

/// When every test begins.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_795_144_500_000);

/// Who calls: organization, account, role and, if narrower than the role, the token's scopes.
const CALLERS: [(&str, &str, Role, Option<&str>); 6] = [
    ("acme", "admin", Role::Admin, None),
    ("acme", "operator", Role::Operator, None),
    ("acme", "auditor", Role::Auditor, None),
    ("acme", "viewer", Role::Viewer, None),
    (
        "acme",
        "narrow",
        Role::Admin,
        Some("events:read service_accounts:rotate_self"),
    ),
    ("globex", "stranger", Role::Admin, None),
];

/// See the module's text.
pub(crate) struct World {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<ManualClock>,
    pub keys_dir: PathBuf,
    store: TestStore,
    tokens: HashMap<&'static str, Secret<String>>,
    runtime: Runtime,
    calls: Cell<u32>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HashMap<&'static str, String>,
    pub text: String,
}

impl Reply {
    /// Returns the body as a document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }
}

const FORM: Form = Form::new("prov_sat_");

struct TestTokens;

impl TokenScheme for TestTokens {
    fn name(&self) -> &'static str {
        "test"
    }

    fn form(&self) -> Option<Form> {
        Some(FORM)
    }

    fn reach(&self) -> Reach {
        Reach::Principal
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&LOOKUP)
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        let scopes: Option<String> = row.get(3)?;
        Ok(Credential {
            organization: OrganizationId::from_store(row.get(0)?),
            kind: "service_account",
            principal_id: row.get(1)?,
            display: row.get(1)?,
            role: Some(Role::parse(row.str(2)?).ok_or_else(|| Error::internal("no role"))?),
            account_scopes: None,
            token_scopes: scopes.map(|text| provost_kernel::auth::ScopeSet::from_store(&text)),
            enabled: true,
            token_id: row.get(4)?,
            prefix: row.get(5)?,
            is_own: true,
            mac: row.get(6)?,
            pepper_id: row.get(7)?,
            issued_at: None,
            expires_at: row.get(8)?,
            revoked_at: None,
            self_rotated: false,
            replay_pending: false,
            last_used_at: None,
            item: None,
            client: None,
            binding: provost_kernel::credential::Binding::Bearer,
        })
    }

    fn first_use(&self, _: &mut OperationContext<'_>, _: &str) -> Result<()> {
        Ok(())
    }

    fn touch(&self, _: &mut OperationContext<'_>, _: &Use) -> Result<()> {
        Ok(())
    }
}

/// Says that no act is named for two people; the area that says it of a real program stands above these.
static ONE_PERSON: Area = Area {
    on: &[&Answers(|_, _: &NamedWords| Ok(Vec::new()))],
    ..Area::named("one_person", "Says that one person does what these tests do")
};

/// The areas of these tests. Nobody else listens to announcements.
static AREAS: Areas = Areas::of(&[
    &ONE_PERSON,
    &crate::audit::AREA,
    &crate::events::AREA,
    &crate::settings::AREA,
    &crate::capabilities::AREA,
]);

fn registry() -> Registry {
    AREAS.registry().area(Vec::new(), &FENCES)
}

fn boot(
    location: Location,
    keys_dir: &Path,
    clock: &Arc<ManualClock>,
    seed: u64,
    extras: Extras,
) -> Arc<Kernel> {
    let parts = Parts {
        extras,
        rights: &[],
        endings: provost_kernel::ends::Endings::NONE,
        registry: registry(),
        schemes: Schemes {
            own: &[&TestTokens],
            delegated: None,
        },
        keys: Keys::open(keys_dir).unwrap(),
        location,
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(seed)),
        settings: Settings {
            rate_limits: false,
            ..Settings::default()
        },
    };
    Kernel::start(parts).unwrap()
}

/// Runs a test on every engine.
pub(crate) fn on_every_store(name: &str, test: impl Fn(&mut World)) {
    for store in migrated(name, provost_server::areas::ALL.migrations(), START) {
        let mut world = World::new(store);
        test(&mut world);
        world.stop();
    }
}

impl World {
    fn new(store: TestStore) -> Self {
        provost_server::areas::ALL.install_scopes().unwrap();
        let mut conn = store.open();
        let keys_dir = {
            let mut unique = [0; 8];
            let seed = provost_kernel::entropy::Entropy::seed(&provost_kernel::entropy::SystemEntropy);
            unique.copy_from_slice(&seed[..8]);
            std::env::temp_dir().join(format!("provost_keys_{}", audit::hex(&unique)))
        };
        let keys = Keys::create(&keys_dir, START, &SeededEntropy::new(1)).unwrap();
        let mut rng = UnitRng::new([7; 32]);
        let mut tokens = HashMap::new();
        let mut calls = Vec::new();
        for organization in ["acme", "globex"] {
            let params = vec![Param::from(organization), Param::from(START)];
            calls.push(Call {
                statement: &ADD_ORGANIZATION,
                params,
            });
        }
        for (organization, id, role, scopes) in CALLERS {
            let minted = token::mint(FORM, &mut rng);
            let (pepper, mac) = keys.token_mac_current(minted.token.expose());
            let account = [
                Param::from(organization),
                Param::from(id),
                Param::from(role.as_str()),
                START.into(),
            ];
            calls.push(Call {
                statement: &ADD_ACCOUNT,
                params: account.to_vec(),
            });
            let token = vec![
                Param::from(organization),
                Param::from(format!("sat_{id}")),
                Param::from(id),
                Param::from(minted.lookup_id),
                Param::from(minted.prefix),
                Param::from(mac),
                Param::from(pepper.clone()),
                Param::from(scopes),
                Param::from(START),
                Param::from(START.plus_secs(365 * 86_400)),
                Param::from(false),
            ];
            calls.push(Call {
                statement: &ADD_TOKEN,
                params: token,
            });
            tokens.insert(id, minted.token);
        }
        conn.begin(&[]).unwrap();
        conn.commit(&calls).unwrap();
        drop(conn);
        let clock = Arc::new(ManualClock::new(START));
        let kernel = boot(
            store.location(),
            &keys_dir,
            &clock,
            2,
            Extras::default().with(&AREAS),
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self {
            kernel,
            clock,
            keys_dir,
            store,
            tokens,
            runtime,
            calls: Cell::new(0),
        }
    }

    /// Ends the kernel and starts another one on the same store and keys.
    pub fn restart(&mut self) {
        self.restart_with(Extras::default().with(&AREAS));
    }

    /// Does so with other extras: without the areas, if they are not among them.
    pub fn restart_with(&mut self, extras: Extras) {
        self.stop();
        self.kernel = boot(self.store.location(), &self.keys_dir, &self.clock, 3, extras);
    }

    fn stop(&self) {
        self.runtime.block_on(self.kernel.stop());
    }

    /// Opens a connection of the test's own.
    pub fn open(&self) -> Conn {
        self.store.open()
    }

    /// Waits for the program's own work.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Moves the clock.
    pub fn advance_secs(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    /// Calls a read.
    pub fn get(&self, who: &str, operation: &str, path: &[(&'static str, &str)], query: &str) -> Reply {
        self.call(who, operation, path, query, None)
    }

    /// Calls a write with the mutation metadata's members added.
    pub fn put(&self, who: &str, operation: &str, body: &Value) -> Reply {
        self.calls.set(self.calls.get() + 1);
        self.put_with_key(who, operation, body, &format!("key-{}", self.calls.get()))
    }

    /// Calls a write under a key.
    pub fn put_with_key(&self, who: &str, operation: &str, body: &Value, key: &str) -> Reply {
        let mut body = body.clone();
        body["reason"] = "because".into();
        body["idempotencyKey"] = key.into();
        self.call(who, operation, &[], "", Some(&body))
    }

    fn call(
        &self,
        who: &str,
        operation: &str,
        path: &[(&'static str, &str)],
        query: &str,
        body: Option<&Value>,
    ) -> Reply {
        let place = self
            .kernel
            .registry
            .entries()
            .iter()
            .position(|entry| entry.meta.id == operation);
        let mut headers = http::HeaderMap::new();
        let bearer = format!("Bearer {}", self.tokens[who].expose());
        headers.insert(http::header::AUTHORIZATION, bearer.parse().unwrap());
        headers.insert(http::header::CONTENT_TYPE, "application/json".parse().unwrap());
        let request = Request {
            operation_index: place.unwrap(),
            organization: CALLERS
                .iter()
                .find(|caller| caller.1 == who)
                .unwrap()
                .0
                .to_owned(),
            path: path
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            query: Some(query.to_owned()),
            headers,
            body: body.map(Value::to_string).unwrap_or_default().into(),
            origin: Origin {
                request_id: "req_test".into(),
                client_request_id: None,
                source_ip: [192, 0, 2, 1].into(),
                is_of_unknown_proxy: false,
                user_agent: Some("test \"agent\"".into()),
                manager: None,
                arrival: provost_kernel::arrival::Arrival::default(),
            },
            entry_point: dispatch::EntryPoint::Http,
            line: (http::Method::GET, "/".into()),
            presented: None,
        };
        match self
            .runtime
            .block_on(dispatch::dispatch(&self.kernel, request))
            .result
        {
            Ok(answer) => Reply {
                status: answer.status,
                headers: answer.headers.into_iter().collect(),
                text: String::from_utf8(answer.body.to_vec()).unwrap(),
            },
            Err(error) => {
                let mut text = error.envelope("req_test");
                text["private"] = error.private().into();
                Reply {
                    status: error.code().status(),
                    headers: HashMap::new(),
                    text: text.to_string(),
                }
            }
        }
    }

    /// Writes what waits for a writer: notes of reads and of denials travel with any unit of the organization.
    pub fn settle(&self) {
        let organization = OrganizationId::parse("acme").unwrap();
        self.run(self.kernel.system(organization, None, |_| Ok(())))
            .unwrap();
    }

    /// Appends notes to a chain as the kernel would, in one transaction.
    pub fn append(&self, organization: &OrganizationId, notes: &[AuditRecord]) {
        let mut conn = self.open();
        let head = Call {
            statement: &audit::HEAD,
            params: vec![Param::from(organization.as_str())],
        };
        let rows = conn.begin(&[head]).unwrap();
        let read = rows[0].first().map(|row| Head::read(organization, &row).unwrap());
        let mut head = read.unwrap_or_else(|| Head::empty(organization.clone()));
        let mut calls = Vec::new();
        for note in notes {
            head.append(note, |_| [7; 32], &mut calls).unwrap();
        }
        calls.extend(head.store(&self.kernel.keys, self.kernel.clock.now()));
        conn.commit(&calls).unwrap();
    }

    /// Appends so many equal notes to the chain of `acme`.
    pub fn grow(&self, count: usize) {
        let acme = OrganizationId::parse("acme").unwrap();
        let note = AuditRecord::new(acme.clone(), self.kernel.clock.now(), "test.grew");
        self.append(&acme, &vec![note; count]);
    }

    /// Returns the whole log of `acme` as exported lines, read as the admin.
    pub fn exported(&self) -> Vec<String> {
        let (mut lines, mut after) = (Vec::new(), "0".to_owned());
        loop {
            let query = format!("after={after}&limit=10000");
            let reply = self.get("admin", "exportHeadlessAuditEvents", &[], &query);
            assert_eq!(reply.status, 200, "{}", reply.text);
            lines.extend(reply.text.lines().map(str::to_owned));
            match reply.headers.get("x-provost-next-after") {
                Some(next) => after.clone_from(next),
                None => return lines,
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.keys_dir);
    }
}

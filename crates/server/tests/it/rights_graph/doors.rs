//! Who can do what, and what opens it: read from the rows, by rules that are written anew here.
//!
//! A *door* is one way to somebody's rights: a token, a login name for which an identity provider vouches, a link, the
//! keys or the redirect address of a client, a membership. Behind it is a *power*. An act gives when a door is there that
//! was not, or when more is behind it than was, or when it stays open longer.

use super::rows::{Row, Rows, number, text};
use provost_kernel::auth::{Permission, Role, ScopeSet, may_mint};
use std::collections::{BTreeMap, BTreeSet};

/// One way to somebody's rights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Door {
    pub kind: &'static str,
    /// What tells it from other doors of its kind: a name, a key, an address.
    pub key: String,
    /// Whose rights are behind it.
    pub of: String,
}

/// What is behind a door.
#[derive(Clone, Debug)]
pub struct Power {
    /// What may be done of the API; `None` is something else, which the kind of the door says.
    pub may: Option<Permission>,
    /// Until when it is open. Units: milliseconds since the Unix epoch.
    pub until: i64,
}

pub type Doors = BTreeMap<Door, Power>;

impl Power {
    /// Says whether this is more than what was behind the door before.
    pub fn gives_beyond(&self, before: Option<&Self>) -> bool {
        let Some(before) = before else { return true };
        let is_covered = match (before.may, self.may) {
            (Some(before), Some(after)) => {
                before.role.covers(after.role)
                    && before.scopes.covers(after.scopes)
                    && (before.all_of_role || !after.all_of_role)
            }
            (None, None) => true,
            _ => false,
        };
        !is_covered || self.until > before.until
    }
}

const FOR_GOOD: i64 = i64::MAX;

struct Account {
    permission: Permission,
    name: String,
    owner: Option<String>,
}

struct User {
    permission: Option<Permission>,
}

/// Reads the doors that are open.
pub struct DoorReader<'a> {
    rows: &'a Rows,
    now: i64,
    accounts: BTreeMap<String, Account>,
    users: BTreeMap<String, User>,
    doors: Doors,
}

/// Returns every door that is open now.
pub fn doors(rows: &Rows, now: i64) -> Doors {
    let mut building = DoorReader {
        rows,
        now,
        accounts: BTreeMap::new(),
        users: BTreeMap::new(),
        doors: Doors::new(),
    };
    building.principals();
    building.of_accounts();
    building.of_users();
    building.links();
    building.clients();
    building.trusts();
    building.machines();
    building.sessions();
    building.things();
    building.doors
}

/// Returns whose token this is, by its public prefix, and what it may do.
pub fn of_token(rows: &Rows, now: i64, prefix: &str) -> Option<(String, Option<Permission>)> {
    let tables = [
        "service_account_tokens",
        "gateway_tokens",
        "enrolment_tokens",
        "device_tokens",
    ];
    let mut all = tables.into_iter().flat_map(|table| rows.of(table));
    let row = all.find(|row| text(row, "token_prefix") == Some(prefix))?;
    let id = text(row, "id").unwrap();
    // No role measures what machines may.
    if prefix.starts_with("prov_ent_") || prefix.starts_with("prov_dvt_") {
        return Some((id.to_owned(), None));
    }
    let doors = doors(rows, now);
    let (door, power) = doors.iter().find(|(door, _)| door.key == id)?;
    Some((door.of.clone(), power.may))
}

fn scopes(row: &Row, column: &str) -> Option<ScopeSet> {
    text(row, column).map(ScopeSet::from_store)
}

fn role(row: &Row) -> Option<Role> {
    text(row, "permission_role").map(|word| Role::parse(word).unwrap())
}

/// SQLite keeps a truth value as an integer.
fn truth(row: &Row, column: &str) -> bool {
    row[column].as_bool().unwrap_or_else(|| number(row, column) == 1)
}

/// A time that is absent is none: SQL's null.
fn at(row: &Row, column: &str) -> Option<i64> {
    row[column].as_i64()
}

/// Says whether what somebody could give who said something covers what is behind it now.
fn reaches(row: &Row, role: &str, scopes: &str, may: Permission) -> bool {
    let role = Role::parse(text(row, role).unwrap()).unwrap();
    let reach = Permission::effective(role, self::scopes(row, scopes), None);
    may_mint(reach, may).is_ok()
}

impl DoorReader<'_> {
    fn open(&mut self, kind: &'static str, key: impl Into<String>, of: &str, may: Option<Permission>) {
        self.open_until(kind, key, of, may, FOR_GOOD);
    }

    fn open_until(
        &mut self,
        kind: &'static str,
        key: impl Into<String>,
        of: &str,
        may: Option<Permission>,
        until: i64,
    ) {
        let (key, of) = (key.into(), of.to_owned());
        self.doors.insert(Door { kind, key, of }, Power { may, until });
    }

    fn principals(&mut self) {
        for row in self.rows.of("service_accounts") {
            let acts = text(row, "status") == Some("active") && at(row, "deleted_at").is_none();
            if !acts {
                continue;
            }
            let permission = Permission::effective(role(row).unwrap(), scopes(row, "scopes"), None);
            let account = Account {
                permission,
                name: text(row, "name_key").unwrap().to_owned(),
                owner: text(row, "owner_console_user_id").map(str::to_owned),
            };
            self.accounts.insert(text(row, "id").unwrap().to_owned(), account);
        }
        for row in self.rows.of("directory_users") {
            if text(row, "status") == Some("active") {
                let permission = role(row).map(|role| Permission::effective(role, None, None));
                self.users
                    .insert(text(row, "id").unwrap().to_owned(), User { permission });
            }
        }
    }

    fn of_accounts(&mut self) {
        let accounts = std::mem::take(&mut self.accounts);
        for (id, account) in &accounts {
            let may = Some(account.permission);
            self.open("account", id, id, may);
            self.open("name of an account", &account.name, id, may);
            if let Some(owner) = &account.owner {
                self.open("owner of an account", owner, id, may);
            }
        }
        for row in self.rows.of("service_account_tokens") {
            let id = text(row, "service_account_id").unwrap();
            let until = number(row, "expires_at");
            let works = at(row, "revoked_at").is_none() && until > self.now;
            let Some(account) = accounts.get(id).filter(|_| works) else {
                continue;
            };
            let may = match scopes(row, "scopes") {
                None => account.permission,
                Some(scopes) => Permission {
                    scopes: account.permission.scopes.and(scopes.closed()),
                    all_of_role: false,
                    ..account.permission
                },
            };
            self.open_until("token", text(row, "id").unwrap(), id, Some(may), until);
        }
        self.accounts = accounts;
    }

    fn of_users(&mut self) {
        for row in self.rows.of("directory_users") {
            let id = text(row, "id").unwrap();
            let Some(user) = self.users.get(id) else { continue };
            // Who has no role can do nothing of the API; what else is open to a user is a membership or a credential.
            let Some(may) = user.permission else { continue };
            self.open("user", id, id, Some(may));
            let names = [
                ("login name", "name_key"),
                ("address", "email"),
                ("id in the directory", "external_id"),
            ];
            for (kind, column) in names {
                if let Some(word) = text(row, column) {
                    self.open(kind, word, id, Some(may));
                }
            }
            // INVARIANT IL-1: who was somebody before is not linked by a login name alone.
            let tables = [
                "oauth_identities",
                "oauth_former_identities",
                "oauth_renamed_users",
            ];
            let mut earlier = tables.into_iter().flat_map(|table| self.rows.of(table));
            if !earlier.any(|row| text(row, "user_id") == Some(id)) {
                self.open("first link of a user", id, id, Some(may));
            }
        }
    }

    fn links(&mut self) {
        for row in self.rows.of("oauth_identities") {
            let id = text(row, "user_id").unwrap();
            let is_held = at(row, "held_at").is_some();
            if let Some(user) = self.users.get(id).filter(|_| !is_held) {
                let key = format!(
                    "{} {}",
                    text(row, "issuer").unwrap(),
                    text(row, "subject").unwrap()
                );
                self.open("identity link", key, id, user.permission);
            }
        }
        for row in self.rows.of("oauth_relinkings") {
            let (id, until) = (text(row, "user_id").unwrap(), number(row, "expires_at"));
            let may = match self.users.get(id) {
                Some(user) => user.permission,
                // Everybody, and so also whoever may do everything.
                None => Some(Permission::effective(Role::Admin, None, None)),
            };
            self.open_until(
                "new link that is allowed",
                text(row, "issuer").unwrap(),
                id,
                may,
                until,
            );
        }
    }

    fn clients(&mut self) {
        for row in self.rows.of("oauth_clients") {
            if at(row, "blocked_at").is_some() {
                continue;
            }
            let [given, ceiling] = ["scopes", "ceiling"].map(|c| scopes(row, c).unwrap().closed());
            let granted = given.and(ceiling);
            let role = match text(row, "service_account_id") {
                None => Role::Viewer,
                Some(id) => match self.accounts.get(id) {
                    None => continue,
                    Some(account) => account.permission.role,
                },
            };
            let may = Some(Permission {
                role,
                scopes: granted,
                all_of_role: false,
            });
            let id = text(row, "id").unwrap();
            let list = |column| -> Vec<String> { serde_json::from_str(text(row, column).unwrap()).unwrap() };
            for uri in list("redirect_uris") {
                self.open("redirect address of a client", uri, id, may);
            }
            for grant in list("grant_types") {
                self.open("grant of a client", grant, id, may);
            }
            for column in ["jwks", "jwks_uri"] {
                if let Some(keys) = text(row, column) {
                    self.open("keys of a client", keys, id, may);
                }
            }
        }
    }

    fn trusts(&mut self) {
        for row in self.rows.of("workload_trusts") {
            if at(row, "suspended_at").is_some() {
                continue;
            }
            let id = text(row, "service_account_id").unwrap();
            let Some(whole) = self.accounts.get(id).map(|account| account.permission) else {
                continue;
            };
            let listed = scopes(row, "scopes").unwrap().closed();
            let may = Permission {
                role: whole.role,
                scopes: whole.scopes.and(listed),
                all_of_role: false,
            };
            let key = format!(
                "{} {} {} {}",
                row["issuer"], row["audience"], row["claims"], row["jwks"]
            );
            self.open("workload that acts as an account", key, id, Some(may));
            // Whoever is the account has what it made and claimed, whatever the scopes (SA-10).
            self.open("account by a workload", text(row, "id").unwrap(), id, Some(whole));
        }
    }

    /// Whom gateways take machines for. Both the owner and the account that is assigned count, since whoever may take the
    /// account away has the owner; and a machine that waits for nobody's approval is as good as active: it calls when it likes.
    fn machines(&mut self) {
        let mut accounts: BTreeMap<&str, &Row> = BTreeMap::new();
        for row in self.rows.of("device_gateway_identities") {
            accounts.insert(text(row, "device_id").unwrap(), row);
        }
        for row in self.rows.of("devices") {
            let id = text(row, "id").unwrap();
            let status = text(row, "status").unwrap();
            let waits = truth(row, "needs_approval");
            let acts = status == "active" || (status == "pending" && !waits);
            if !acts || at(row, "held_at").is_some() {
                continue;
            }
            let owner = text(row, "owner_user_id").and_then(|owner| self.users.get(owner));
            if let Some(user) = owner {
                let may = user.permission;
                if may.is_none_or(|may| reaches(row, "owner_reach_role", "owner_reach_scopes", may)) {
                    self.open("owner of a machine", id, text(row, "owner_user_id").unwrap(), may);
                }
            }
            let Some(row) = accounts.get(id) else { continue };
            let Some(account) = text(row, "service_account_id") else {
                continue;
            };
            let may = self.accounts.get(account).map(|account| account.permission);
            if let Some(may) = may.filter(|may| reaches(row, "reach_role", "reach_scopes", *may)) {
                self.open("account of a machine", id, account, Some(may));
            }
        }
    }

    fn sessions(&mut self) {
        let kinds: BTreeMap<i64, ScopeSet> = self
            .rows
            .of("mcp_session_kinds")
            .map(|row| (number(row, "kind"), scopes(row, "scopes").unwrap()))
            .collect();
        for row in self.rows.of("mcp_sessions") {
            let until = number(row, "expires_at");
            let has_ended = at(row, "ended_at").is_some() || until <= self.now || self.is_cut(row);
            if has_ended {
                continue;
            }
            let of = ["service_account_id", "console_user_id"]
                .into_iter()
                .find_map(|column| text(row, column));
            let may = Some(Permission {
                role: Role::Viewer,
                scopes: kinds[&number(row, "kind")].closed(),
                all_of_role: false,
            });
            self.open_until("session", text(row, "id").unwrap(), of.unwrap_or(""), may, until);
        }
        for (table, key, end) in [
            ("oauth_codes", "digest", "expires_at"),
            ("oauth_refresh_tokens", "lookup_id", "ends_at"),
        ] {
            for row in self.rows.of(table) {
                let until = number(row, end);
                if until > self.now {
                    let of = text(row, "user_id").unwrap();
                    self.open_until("code or refresh token", text(row, key).unwrap(), of, None, until);
                }
            }
        }
    }

    fn is_cut(&self, session: &Row) -> bool {
        let mut cuts = self.rows.of("mcp_session_cuts");
        cuts.any(|cut| {
            let subject = text(cut, "subject").unwrap();
            let of = ["mcp_client_id", "service_account_id", "console_user_id"];
            let is_meant = of
                .into_iter()
                .filter_map(|column| text(session, column))
                .any(|id| subject.ends_with(id));
            is_meant && number(session, "seq") <= number(cut, "cut_seq")
        })
    }

    fn things(&mut self) {
        for row in self.rows.of("gateway_tokens") {
            let until = number(row, "expires_at");
            let works = at(row, "revoked_at").is_none() && until > self.now;
            let of = text(row, "principal_id").unwrap();
            if works && (self.accounts.contains_key(of) || self.users.contains_key(of)) {
                self.open_until("gateway token", text(row, "id").unwrap(), of, None, until);
            }
        }
        for row in self.rows.of("directory_memberships") {
            let user = text(row, "user_id").unwrap();
            if self.users.contains_key(user) {
                self.open("membership", text(row, "group_id").unwrap(), user, None);
            }
        }
        for row in self.rows.of("resource_credential_assignments") {
            let credential = text(row, "credential_id").unwrap();
            self.open("credential", credential, text(row, "subject_id").unwrap(), None);
        }
        for row in self.rows.of("resource_credentials") {
            if truth(row, "is_default") {
                let (id, resource) = (text(row, "id").unwrap(), text(row, "resource_id").unwrap());
                self.open("credential for everybody", id, resource, None);
            }
        }
        for row in self.rows.of("identity_mappings") {
            let user = text(row, "user_id").unwrap();
            self.open("word of telemetry", text(row, "match_key").unwrap(), user, None);
        }
        let hosts: BTreeMap<&str, String> = self
            .rows
            .of("resource_gateways")
            .map(|row| (text(row, "id").unwrap(), row["hostname"].to_string()))
            .collect();
        let keeping = self
            .rows
            .of("resource_credentials")
            .filter_map(|row| text(row, "resource_id"));
        let keeping: BTreeSet<&str> = keeping.collect();
        for row in self.rows.of("resources") {
            // Where there is no secret, none is sent.
            if !keeping.contains(text(row, "id").unwrap()) {
                continue;
            }
            let gateway = text(row, "gateway_id").and_then(|id| hosts.get(id));
            let place = format!(
                "{}:{} through {gateway:?}",
                row["upstream_host"], row["upstream_port"]
            );
            self.open(
                "place where secrets are sent",
                place,
                text(row, "id").unwrap(),
                None,
            );
        }
    }
}

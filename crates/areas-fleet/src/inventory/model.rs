//! The words and rules of the inventory, without storage.

use super::evidence::EvidenceView;
use super::skills::SkillStanding;
use super::store::Age;
use crate::fleet::{DeviceId, Sight};
use provost_inventory::Client;
use provost_inventory::wire::{self, SectionFault};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, id, word};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

id!(ServerId, "srv", "Names an MCP server by its identity.");
id!(AssetId, "ast", "Names something else that was found.");
id!(
    ObservationId,
    "obs",
    "Names one thing in one place of one device."
);

/// LIMIT: observations of a device that are not removed (F3.9).
pub const MOST_OBSERVATIONS: i64 = 2_000;
/// LIMIT: removed observations of a device. Ours: a program that is built anew each hour fills a fortnight, and a device that changes all
/// the time costs little more than one that does not.
pub const MOST_REMOVED: i64 = 500;
/// LIMIT: servers that nobody decided about, and other assets, that one device made known. Ours: no device fills the organization.
pub const MOST_OF_DEVICE: i64 = 1_000;
/// LIMIT: identities of servers, and assets of each kind, in an organization. Ours: devices invent no end of them.
pub const MOST_SERVERS: i64 = 50_000;
/// How long a removed observation is kept. Units: seconds (F3.12).
pub const REMOVED_SECS: i64 = 90 * 86_400;
/// The longest life of an approval. Units: seconds.
pub const APPROVAL_SECS: i64 = 366 * 86_400;
/// How old a scan may be for its device to count as one that reports. Units: seconds (F3.11).
pub const REPORTING_SECS: i64 = 7 * 86_400;

word! {
    /// How a server stands.
    pub enum Standing {
        /// An admin approved it, until an instant.
        Approved = "approved",
        /// An admin denied it.
        Denied = "denied",
        /// Nobody decided about it, or an approval ended.
        Shadow = "shadow",
        /// It ships in its client.
        Builtin = "builtin",
    }
}

word! {
    /// What an admin decides about a server.
    pub enum Verdict {
        /// It may be there, until an instant.
        Approved = "approved",
        /// It may not.
        Denied = "denied",
        /// Nothing is decided.
        Shadow = "shadow",
    }
}

word! {
    /// What else than servers is found.
    #[derive(PartialOrd, Ord)]
    pub enum AssetKind {
        // A skill, by the digest of its files.
        Skill = "skill",
        // A plugin or an extension of a client.
        Extension = "extension",
    }
}

impl From<Verdict> for Standing {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approved => Self::Approved,
            Verdict::Denied => Self::Denied,
            Verdict::Shadow => Self::Shadow,
        }
    }
}

/// Returns the standing that a server begins with: its key decides, and a place that has it in another client, or started, is weak.
pub fn beginning(key: &str) -> Standing {
    if Client::ALL.iter().any(|client| wire::is_builtin(*client, key)) {
        Standing::Builtin
    } else {
        Standing::Shadow
    }
}

/// A server as it is stored.
#[derive(Clone, Debug)]
pub struct Server {
    pub id: ServerId,
    pub seq: i64,
    pub key: String,
    pub name: String,
    pub standing: Standing,
    pub standing_at: Timestamp,
    pub standing_until: Option<Timestamp>,
    pub standing_by: Option<String>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub counts: Counts,
    /// Whether a device ever had it.
    pub is_configured: bool,
}

/// How often a server stands in configurations of devices that are not retired.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub devices: i64,
    pub accounts: i64,
    pub instances: i64,
    pub weak: i64,
}

impl Server {
    /// Returns how it stands at an instant: one that is weak wherever it is configured is shadow.
    ///
    /// Keeps IN-6.
    pub fn stands(&self, now: Timestamp) -> Standing {
        let is_weak = self.counts.instances > 0 && self.counts.weak == self.counts.instances;
        Self::standing_of(self.standing, self.standing_until, is_weak, now)
    }

    /// Returns what is decided about it at an instant, wherever it is.
    pub fn decided(&self, now: Timestamp) -> Standing {
        Self::standing_of(self.standing, self.standing_until, false, now)
    }

    /// Returns how what is stored stands at an instant, in a place where its key says wholly what runs or does not: what is weak is
    /// approved by nobody.
    ///
    /// Keeps IN-5.
    pub fn standing_of(
        standing: Standing,
        until: Option<Timestamp>,
        is_weak: bool,
        now: Timestamp,
    ) -> Standing {
        let is_over = until.is_none_or(|until| until <= now);
        match standing {
            Standing::Approved if is_over || is_weak => Standing::Shadow,
            Standing::Builtin if is_weak => Standing::Shadow,
            standing => standing,
        }
    }

    /// Decides about it, and says whether that changed anything.
    ///
    /// Errors: `Conflict` for an approval of what is weak wherever it was found; `InvalidDefinition` for an end that does not fit.
    pub fn decide(
        &mut self,
        verdict: Verdict,
        until: Option<Timestamp>,
        by: &str,
        now: Timestamp,
    ) -> Result<bool> {
        match (verdict, until) {
            (Verdict::Approved, None) => {
                return Err(Error::unfit("/expiresAt", "must say when the approval ends"));
            }
            (Verdict::Approved, Some(until)) if until <= now || until > now.plus_secs(APPROVAL_SECS) => {
                return Err(Error::unfit(
                    "/expiresAt",
                    "must lie in the future, and at most 366 days ahead",
                ));
            }
            (Verdict::Denied | Verdict::Shadow, Some(_)) => {
                return Err(Error::unfit("/expiresAt", "only an approval ends by time"));
            }
            _ => {}
        }
        // Keeps IN-6.
        if verdict == Verdict::Approved && self.is_weak() {
            let message = "the server cannot be approved: its key does not say wholly what runs (it is weak wherever it is \
                           configured), so that an approval would hold for whatever takes its place; pin what it starts";
            return Err(Error::new(Code::Conflict, message));
        }
        let standing = Standing::from(verdict);
        if (self.decided(now), self.standing_until.filter(|end| *end > now)) == (standing, until) {
            return Ok(false);
        }
        self.standing = standing;
        self.standing_at = now;
        self.standing_until = until;
        // What is taken back is as if nobody had decided: it may be forgotten, and the log knows who it was.
        self.standing_by = (standing != Standing::Shadow).then(|| by.to_owned());
        Ok(true)
    }

    fn is_weak(&self) -> bool {
        wire::is_always_weak(&self.key) || self.counts.instances == self.counts.weak
    }
}

/// An MCP server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventoryServer")]
pub struct ServerView {
    id: ServerId,
    /// What it is: one key for every spelling of the same thing.
    key: String,
    /// How the first client that had it calls it. A name says nothing of what runs.
    name: String,
    /// How it stands. An instance whose key is weak is shadow though its server is approved, and a server of which every instance is
    /// weak is shadow.
    standing: Standing,
    standing_since: Timestamp,
    /// The end of an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing_until: Option<Timestamp>,
    /// The id of whoever decided; where people are pseudonymous, what stands for somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing_by: Option<String>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    /// On how many devices that are not retired it is configured.
    devices: i64,
    /// In how many homes of these devices.
    accounts: i64,
    /// In how many places.
    instances: i64,
    /// In how many of these places its key does not say wholly what runs.
    weak_instances: i64,
    /// By which evidence it is known: configurations, and events that name it or may. That it is configured does not say that it is used.
    evidence: Vec<EvidenceView>,
}

impl ServerView {
    /// Returns what is seen of a server at an instant, with what events say of it.
    ///
    /// Keeps PV-1.
    pub fn of(server: Server, now: Timestamp, used: Vec<EvidenceView>, sight: &Sight<'_>) -> Self {
        let standing = server.stands(now);
        Self {
            standing,
            id: server.id,
            key: server.key,
            name: server.name,
            standing_since: match (standing, server.standing_until) {
                // It ended by itself.
                (Standing::Shadow, Some(until)) if until <= now => until,
                _ => server.standing_at,
            },
            standing_until: server.standing_until.filter(|_| standing == Standing::Approved),
            standing_by: server.standing_by.map(|by| sight.maker(by)),
            first_seen_at: server.first_seen_at,
            last_seen_at: server.last_seen_at,
            devices: server.counts.devices,
            accounts: server.counts.accounts,
            instances: server.counts.instances,
            weak_instances: server.counts.weak,
            evidence: server
                .is_configured
                .then(|| EvidenceView::configured(server.first_seen_at, server.last_seen_at))
                .into_iter()
                .chain(used)
                .collect(),
        }
    }
}

/// One server, and how old the data are.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerNow {
    /// It.
    pub server: ServerView,
    /// How old the data are.
    pub data_age: Age,
}

/// The path of operations on one server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ServerPath {
    /// The server.
    pub server_id: ServerId,
}

/// Something else that was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventoryAsset")]
pub struct Asset {
    pub id: AssetId,
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) seq: i64,
    pub kind: AssetKind,
    /// What it is: a skill by the digest of its files, an extension by its client and name.
    pub key: String,
    /// How the first device that had it calls it.
    pub name: String,
    /// How a skill stands beside the registry; absent for callers who may not read that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<SkillStanding>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// On how many devices that are not retired it is.
    pub devices: i64,
    /// In how many places.
    pub instances: i64,
    /// By which evidence it is known. No event names a skill by its digest.
    pub evidence: Vec<EvidenceView>,
}

/// How something stands that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FoundStanding {
    /// A server.
    Server(Standing),
    /// A skill.
    Skill(SkillStanding),
}

impl JsonSchema for FoundStanding {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "FoundStanding".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let of_skills = SkillStanding::ALL.into_iter().map(SkillStanding::as_str);
        let words: Vec<&str> = Standing::ALL
            .into_iter()
            .map(Standing::as_str)
            .chain(of_skills)
            .collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

/// One thing in one place of one device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventoryObservation")]
pub struct ObservationView {
    pub id: ObservationId,
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) seq: i64,
    pub device_id: DeviceId,
    /// The client. Open.
    pub client: String,
    /// The account whose home was read; where people are pseudonymous, what stands for it on a device that is not the caller's.
    pub account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_id: Option<ServerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset_id: Option<AssetId>,
    /// Of a server; of a skill beside the registry, for callers who may read that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<FoundStanding>,
    /// What a person calls what was found: of a server its name in the configuration, of a credential its form and who holds it, of a hook
    /// its event.
    pub name: String,
    /// What was found: an observation of a report, as its device sent it.
    pub found: Map<String, Value>,
    /// What the folder of the project is called in which it was found, where the settings show names of projects
    /// (`fleet.privacy.projectNames`) and its device says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// Whether a project may bring another program of this name: its client starts the server in whatever project it is started in, and a
    /// package there comes before the one of the key. An approval holds for the key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub replaceable_by_project: bool,
    pub first_seen_at: Timestamp,
    /// When a complete look at its section no longer found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

/// Says whether a project may bring another program in the place of what was found: a package of npm that is configured for every project. In
/// the configuration of a project the scan has looked, and says `weak` where the project does.
pub fn is_replaceable(found: &Map<String, Value>) -> bool {
    let says = |member: &str| found.get(member).and_then(Value::as_str).unwrap_or_default();
    let is_weak = found.get("weak").and_then(Value::as_bool).unwrap_or_default();
    says("kind") == "mcp_server" && says("key").starts_with("npm:") && says("scope") != "project" && !is_weak
}

/// What is known of one client in one home of a device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventorySection")]
pub struct SectionView {
    /// The client. Open.
    pub client: String,
    /// The account whose home was read; where people are pseudonymous, what stands for it on a device that is not the caller's.
    pub account: String,
    /// Whether the last look could read everything. Where it could not, what an earlier one found is kept.
    pub complete: bool,
    /// Whether there is more than is kept.
    pub truncated: bool,
    /// How many observations there was no room for.
    pub not_kept: i64,
    /// What could not be read.
    pub faults: Vec<SectionFault>,
    /// When the device last spoke of it.
    pub reported_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_package_that_every_project_may_bring_is_marked_and_nothing_else_is() {
        let of = |kind: &str, key: &str, scope: &str, weak: bool| {
            let found = json!({ "kind": kind, "key": key, "scope": scope, "weak": weak });
            is_replaceable(found.as_object().unwrap())
        };
        assert!(of("mcp_server", "npm:@acme/files", "user", false));
        assert!(of("mcp_server", "npm:@acme/files", "plugin", false));
        for (kind, key, scope, weak) in [
            ("mcp_server", "npm:@acme/files", "project", false),
            ("mcp_server", "npm:@acme/files", "user", true),
            ("mcp_server", "pypi:files", "user", false),
            ("mcp_server", "url:https://npm.acme.example/mcp", "user", false),
            ("extension", "npm:@acme/files", "user", false),
        ] {
            assert!(!of(kind, key, scope, weak), "{kind} {key} {scope} {weak}");
        }
    }

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn server(key: &str, instances: i64, weak: i64) -> Server {
        Server {
            id: ServerId::from_text("srv_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            seq: 1,
            key: key.into(),
            name: "files".into(),
            standing: beginning(key),
            standing_at: Timestamp::EPOCH,
            standing_until: None,
            standing_by: None,
            first_seen_at: Timestamp::EPOCH,
            last_seen_at: Timestamp::EPOCH,
            counts: Counts {
                devices: 1,
                accounts: 1,
                instances,
                weak,
            },
            is_configured: true,
        }
    }

    impl Server {
        fn instance(&self, is_weak: bool) -> Standing {
            Self::standing_of(self.standing, self.standing_until, is_weak, NOW)
        }
    }

    fn code(result: Result<bool>) -> Code {
        result.unwrap_err().code()
    }

    /// Proves IN-5.
    #[test]
    fn an_approval_has_an_end_and_ends_there() {
        let mut one = server("npm:@acme/files", 1, 0);
        let until = NOW.plus_secs(60);
        assert_eq!(
            code(one.decide(Verdict::Approved, None, "sva_1", NOW)),
            Code::InvalidDefinition
        );
        assert_eq!(
            code(one.decide(Verdict::Approved, Some(NOW), "sva_1", NOW)),
            Code::InvalidDefinition
        );
        assert_eq!(
            code(one.decide(Verdict::Denied, Some(until), "sva_1", NOW)),
            Code::InvalidDefinition
        );
        assert!(one.decide(Verdict::Approved, Some(until), "sva_1", NOW).unwrap());
        assert!(!one.decide(Verdict::Approved, Some(until), "sva_2", NOW).unwrap());
        assert_eq!(one.stands(until.plus_ms(-1)), Standing::Approved);
        assert_eq!(one.stands(until), Standing::Shadow);
        assert!(!one.decide(Verdict::Shadow, None, "sva_2", until).unwrap());
        assert!(one.decide(Verdict::Denied, None, "sva_2", until).unwrap());
        assert_eq!(one.standing_by.as_deref(), Some("sva_2"));
        assert!(one.decide(Verdict::Shadow, None, "sva_3", until).unwrap());
        assert_eq!(one.standing_by, None);
    }

    /// Proves IN-6.
    #[test]
    fn what_is_weak_everywhere_is_not_approved_and_a_weak_instance_is_shadow() {
        let until = Some(NOW.plus_secs(60));
        for mut weak in [
            server("cmd:hmac:00", 1, 0),
            server("npm:files", 2, 2),
            server("npm:files", 0, 0),
            server("CMD:hmac:00", 1, 0),
        ] {
            assert_eq!(
                code(weak.decide(Verdict::Approved, until, "sva_1", NOW)),
                Code::Conflict
            );
            assert!(weak.decide(Verdict::Denied, None, "sva_1", NOW).unwrap());
        }
        let mut mixed = server("npm:files", 2, 1);
        assert!(mixed.decide(Verdict::Approved, until, "sva_1", NOW).unwrap());
        assert_eq!(mixed.instance(false), Standing::Approved);
        assert_eq!(mixed.instance(true), Standing::Shadow);
        assert_eq!(mixed.stands(NOW), Standing::Approved);
        mixed.counts.weak = 2;
        assert_eq!(mixed.stands(NOW), Standing::Shadow);
        assert_eq!(mixed.decided(NOW), Standing::Approved);
        let builtin = |weak| server("builtin:goose/developer", 1, weak).stands(NOW);
        assert_eq!((builtin(0), builtin(1)), (Standing::Builtin, Standing::Shadow));
        for key in [
            "builtin:goose/evil",
            "builtin:docker-mcp-gateway",
            "BUILTIN:goose/developer",
        ] {
            assert_eq!(server(key, 1, 0).stands(NOW), Standing::Shadow, "{key}");
        }
    }
}

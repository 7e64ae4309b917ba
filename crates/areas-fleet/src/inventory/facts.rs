//! What is known of a server from its configurations, frozen where somebody asks for it and compared later (F8.7).
//!
//! Numbers move every hour and say how far an approval reaches. What weighs is what could make the server another thing: a version, how it is
//! pinned and a transport that were not among those then, and credentials beside it where there were none. What goes away weighs nothing.
//!
//! Absent on purpose: findings and advisories, which nothing here has; hosts and packages, because a server is its key, and another host is
//! another server.

use super::model::{Counts, ServerId};
use super::store;
use provost_kernel::{OperationContext, Result, params, statements};
use provost_words::digest::sha256_hex;
use provost_words::visible::visible;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// LIMIT: places of a server that are looked at, the newest. Ours: a unit of work waits for them.
const LOOKED_AT: i64 = 2_000;
/// LIMIT: versions that are told. Ours: somebody reads them.
const VERSIONS: usize = 50;

statements! {
    /// How the newest places of a server have it: each way once.
    WAYS = {
        sqlite: "SELECT DISTINCT client, transport, version_pin, facts ->> 'version', COALESCE(CAST(facts ->> 'secretsInline' AS INTEGER), 0) > 0 FROM (SELECT client, transport, version_pin, facts FROM inventory_observations WHERE organization_id = ?1 AND server_id = ?2 AND removed_at IS NULL ORDER BY seq DESC LIMIT ?3) AS newest ORDER BY 1, 2, 3, 4, 5",
        postgres: "SELECT DISTINCT client, transport, version_pin, CAST(facts AS JSONB) ->> 'version', COALESCE(CAST(CAST(facts AS JSONB) ->> 'secretsInline' AS BIGINT), 0) > 0 FROM (SELECT client, transport, version_pin, facts FROM inventory_observations WHERE organization_id = ?1 AND server_id = ?2 AND removed_at IS NULL ORDER BY seq DESC LIMIT ?3) AS newest ORDER BY 1, 2, 3, 4, 5",
    };
}

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerFacts {
    /// On how many devices that are not retired it is configured.
    devices: i64,
    /// In how many homes of these devices.
    accounts: i64,
    /// In how many places.
    instances: i64,
    /// In how many of these places its key does not say wholly what runs.
    weak_instances: i64,
    /// In how many of these places the rest was looked at: the newest, 2 000 at most.
    looked_at: i64,
    /// The clients that have it.
    clients: BTreeSet<String>,
    /// How it is reached.
    transports: BTreeSet<String>,
    /// How its version is named: `exact`, `floating`, `digest`, `none`.
    version_pins: BTreeSet<String>,
    /// The versions that are named, 50 at most.
    versions: BTreeSet<String>,
    /// Where there are more: the SHA-256 of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all_versions_sha256: Option<String>,
    /// Whether credentials stand in its configuration somewhere.
    credentials: bool,
}

/// A member of the facts that is another: its JSON Pointer, what it was, what it is, and whether that weighs.
pub type Difference = (&'static str, Value, Value, bool);

impl ServerFacts {
    /// Returns what weighs, in words that differ when that does.
    pub fn weighty(&self) -> String {
        json!([
            self.transports,
            self.version_pins,
            self.versions,
            self.all_versions_sha256,
            self.credentials
        ])
        .to_string()
    }

    /// Leaves versions out where nobody would read them all; that one is another shows all the same.
    fn shorten(&mut self) {
        if self.versions.len() > VERSIONS {
            let all = json!(self.versions).to_string();
            self.all_versions_sha256 = Some(sha256_hex(all.as_bytes()));
            self.versions = std::mem::take(&mut self.versions)
                .into_iter()
                .take(VERSIONS)
                .collect();
        }
    }

    /// Returns what is another now.
    pub fn drift(&self, now: &Self) -> Vec<Difference> {
        let number = |path, then: i64, now: i64| (path, then.into(), now.into(), false);
        let words = |path, then: &BTreeSet<String>, now: &BTreeSet<String>, weighs: bool| {
            (path, json!(then), json!(now), weighs && !now.is_subset(then))
        };
        let all = [
            number("/devices", self.devices, now.devices),
            number("/accounts", self.accounts, now.accounts),
            number("/instances", self.instances, now.instances),
            number("/weakInstances", self.weak_instances, now.weak_instances),
            words("/clients", &self.clients, &now.clients, false),
            words("/transports", &self.transports, &now.transports, true),
            words("/versionPins", &self.version_pins, &now.version_pins, true),
            words("/versions", &self.versions, &now.versions, true),
            (
                "/allVersionsSha256",
                json!(self.all_versions_sha256),
                json!(now.all_versions_sha256),
                now.all_versions_sha256.is_some(),
            ),
            (
                "/credentials",
                self.credentials.into(),
                now.credentials.into(),
                now.credentials && !self.credentials,
            ),
        ];
        all.into_iter().filter(|(_, then, now, _)| then != now).collect()
    }
}

/// Returns what is known of a server now.
///
/// Errors: `NotFound`. Cost: three statements, and two thousand rows at most.
pub fn facts(ctx: &mut OperationContext<'_>, id: &ServerId) -> Result<ServerFacts> {
    let Counts {
        devices,
        accounts,
        instances,
        weak,
    } = store::get(ctx, id)?.counts;
    let mut facts = ServerFacts {
        devices,
        accounts,
        instances,
        weak_instances: weak,
        looked_at: instances.min(LOOKED_AT),
        ..ServerFacts::default()
    };
    let org = ctx.org();
    let ways = ctx.query(&WAYS, params![org, id.as_str(), LOOKED_AT], |row| {
        let words: [Option<String>; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        Ok((words, row.get::<bool>(4)?))
    })?;
    for ([client, transport, version_pin, version], has_credentials) in ways {
        facts.clients.extend(client);
        facts.transports.extend(transport);
        facts.version_pins.extend(version_pin);
        facts
            .versions
            .extend(version.map(|version| visible(&version).into_owned()));
        facts.credentials |= has_credentials;
    }
    facts.shorten();
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Move = fn(&mut ServerFacts);

    fn facts() -> ServerFacts {
        ServerFacts {
            devices: 1,
            accounts: 1,
            instances: 2,
            clients: ["claude_code".to_owned()].into(),
            transports: ["stdio".to_owned()].into(),
            version_pins: ["exact".to_owned()].into(),
            versions: ["1.2.3".to_owned(), "1.2.4".to_owned()].into(),
            ..ServerFacts::default()
        }
    }

    #[test]
    fn what_could_be_another_thing_weighs_and_nothing_else_does() {
        let then = facts();
        assert!(then.drift(&facts()).is_empty());
        let light: [Move; 5] = [
            |now| now.devices = 7,
            |now| (now.accounts, now.instances, now.weak_instances) = (7, 7, 7),
            |now| now.clients.extend(["cursor".to_owned()]),
            |now| now.versions.clear(),
            |now| *now = ServerFacts::default(),
        ];
        for change in light {
            let mut now = facts();
            change(&mut now);
            let drift = then.drift(&now);
            assert!(
                !drift.is_empty() && drift.iter().all(|(.., is_weighty)| !is_weighty),
                "{drift:?}"
            );
        }
        let weighty: [(&str, Move); 4] = [
            ("/transports", |now| now.transports.extend(["http".to_owned()])),
            ("/versionPins", |now| {
                now.version_pins.extend(["floating".to_owned()]);
            }),
            ("/versions", |now| now.versions.extend(["6.6.6".to_owned()])),
            ("/credentials", |now| now.credentials = true),
        ];
        for (path, change) in weighty {
            let mut now = facts();
            change(&mut now);
            let drift = then.drift(&now);
            let [(found, .., is_weighty)] = drift.as_slice() else {
                panic!("{drift:?}");
            };
            assert_eq!((*found, *is_weighty), (path, true));
            assert_ne!(then.weighty(), now.weighty());
        }
    }

    #[test]
    fn a_version_more_weighs_where_there_are_too_many_to_be_told() {
        let many = |most: usize| {
            let versions = (0..most).map(|n| format!("1.{n:04}"));
            let mut facts = ServerFacts {
                versions: versions.collect(),
                ..ServerFacts::default()
            };
            facts.shorten();
            facts
        };
        let then = many(VERSIONS);
        assert_eq!(
            (then.versions.len(), &then.all_versions_sha256),
            (VERSIONS, &None)
        );
        for (then, now) in [
            (then, many(VERSIONS + 1)),
            (many(VERSIONS + 1), many(VERSIONS + 2)),
        ] {
            assert_eq!(now.versions.len(), VERSIONS);
            let drift = then.drift(&now);
            assert!(
                drift
                    .iter()
                    .any(|(path, .., weighs)| *path == "/allVersionsSha256" && *weighs),
                "{drift:?}"
            );
        }
        assert!(many(60).drift(&many(60)).is_empty());
    }
}

//! The words and rules of resources, without storage.

use super::definition::{Breaches, SingleLine};
use super::ownership::Owner;
use provost_kernel::text::{IntegerBetween, Name};
use provost_kernel::{Timestamp, id};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

id!(ResourceId, "res", "Names a resource.");

/// LIMIT: characters of certificates (client contract §4.1).
const MAX_PEM: usize = 65_536;

provost_kernel::word! {
    /// What a resource speaks.
    pub enum Protocol {
        /// HTTP, with or without TLS.
        Http = "http",
        /// `PostgreSQL`.
        Postgres = "postgres",
        /// `MySQL`.
        Mysql = "mysql",
        /// Redis.
        Redis = "redis",
    }
}

/// Certificates as a client writes them; what they say is judged with the definition.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, extend("maxLength" = MAX_PEM))]
pub struct Pem(String);

impl TryFrom<String> for Pem {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.chars().count() <= MAX_PEM {
            return Ok(Self(text));
        }
        Err("must have at most 65536 characters")
    }
}

/// What a resource is made of; a write replaces all of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ResourceBody {
    /// Unique in the organization, upper and lower case alike.
    pub name: Name,
    /// What it speaks.
    pub protocol: Protocol,
    /// A host name or an address.
    pub upstream_host: SingleLine<3, 253>,
    /// The port.
    pub upstream_port: IntegerBetween<1, 65_535>,
    /// Whether the connection is encrypted; only http may go without.
    #[serde(default = "yes")]
    pub upstream_tls: bool,
    /// Certificates that are trusted instead of the system's, PEM; empty is none.
    #[serde(default)]
    pub upstream_ca_pem: Option<Pem>,
    /// Whether it can be reached.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether managed devices reach it by its own address; needs a gateway.
    #[serde(default)]
    pub transparent_routing: bool,
    /// The gateway in front of it.
    pub gateway_id: Option<SingleLine<1, 256>>,
}

/// Returns `true`, the default of several members.
pub const fn yes() -> bool {
    true
}

impl ResourceBody {
    /// Returns the certificates, unless there are none.
    pub fn ca_pem(&self) -> Option<&str> {
        self.upstream_ca_pem
            .as_ref()
            .map(|pem| pem.0.as_str())
            .filter(|pem| !pem.is_empty())
    }

    /// Returns what the schema cannot say. `gateway_exists` is about the gateway that the body names, if any.
    pub fn breaches(&self, gateway_exists: bool) -> Breaches {
        let mut breaches = Breaches::default();
        breaches.unless(
            is_host(self.upstream_host.as_str()),
            "/upstreamHost",
            "must be a host name or an IP address",
        );
        breaches.unless(
            self.upstream_tls || self.protocol == Protocol::Http,
            "/upstreamTls",
            "must be true unless the protocol is http",
        );
        if let Some(pem) = self.ca_pem() {
            breaches.unless(
                self.upstream_tls,
                "/upstreamCaPem",
                "is of no use without upstreamTls",
            );
            breaches.unless(
                is_certificates(pem),
                "/upstreamCaPem",
                "must be certificates in PEM, without spaces at either end",
            );
        }
        breaches.unless(
            self.gateway_id.is_some() || !self.transparent_routing,
            "/gatewayId",
            "is required with transparentRouting",
        );
        breaches.unless(
            self.gateway_id.is_none() || gateway_exists,
            "/gatewayId",
            "names no resource gateway of this organization",
        );
        breaches
    }
}

/// Says whether a text is a host name (labels of letters, digits, `-` and `_`) or an IP address.
pub fn is_host(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    is_host_name(text)
}

/// Says whether a text is a host name and no address: its last label is not a number.
pub fn is_host_name(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or("");
    // Resolvers take `0x7f.1` and `2130706433` for addresses.
    let is_number = last.bytes().all(|b| b.is_ascii_digit()) || last.to_ascii_lowercase().starts_with("0x");
    text.len() <= 253 && text.split('.').all(is_label) && !is_number
}

fn is_certificates(pem: &str) -> bool {
    let is_plain = |b: u8| matches!(b, b'\n' | b'\r' | b'\t' | b' '..=b'~');
    if pem.trim() != pem || !pem.bytes().all(is_plain) {
        return false;
    }
    let mut roots = rustls::RootCertStore::empty();
    let mut certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    certificates.all(|certificate| certificate.is_ok_and(|der| roots.add(der).is_ok())) && !roots.is_empty()
}

/// A resource as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its id.
    pub id: ResourceId,
    /// Its name.
    pub name: String,
    /// By what name clients reach it through a gateway; never changes.
    pub access_name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it is.
    pub upstream_host: String,
    /// The port.
    pub upstream_port: i64,
    /// Whether the connection is encrypted.
    pub upstream_tls: bool,
    /// Certificates that are trusted.
    pub upstream_ca_pem: Option<String>,
    /// Whether it can be reached.
    pub enabled: bool,
    /// Whether managed devices reach it by its own address.
    pub transparent_routing: bool,
    /// The gateway in front of it.
    pub gateway_id: Option<String>,
    /// Who manages it.
    pub owner: Owner,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Resource {
    /// Replaces everything that a body holds.
    pub fn apply(&mut self, body: &ResourceBody) {
        body.name.as_str().clone_into(&mut self.name);
        self.protocol = body.protocol;
        body.upstream_host.as_str().clone_into(&mut self.upstream_host);
        self.upstream_port = body.upstream_port.get();
        self.upstream_tls = body.upstream_tls;
        self.upstream_ca_pem = body.ca_pem().map(str::to_owned);
        self.enabled = body.enabled;
        self.transparent_routing = body.transparent_routing;
        self.gateway_id = body.gateway_id.as_ref().map(|id| id.as_str().to_owned());
    }
}

/// Returns the name by which clients reach a resource: what is left of its name, and the end of its id.
///
/// It is a DNS label, and unique because ids are; the name may change later, this does not.
pub fn access_name(name: &str, id: &ResourceId) -> String {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(48);
    let slug = slug.trim_end_matches('-');
    let tail = &id.as_str()[id.as_str().len() - 10..];
    if slug.is_empty() {
        format!("r-{tail}")
    } else {
        format!("{slug}-{tail}")
    }
}

/// A resource as its readers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Resource")]
pub struct ResourceView {
    id: ResourceId,
    organization_id: String,
    name: String,
    access_name: String,
    protocol: Protocol,
    upstream_host: String,
    upstream_port: i64,
    upstream_tls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    upstream_ca_pem: Option<String>,
    enabled: bool,
    transparent_routing: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_id: Option<String>,
    /// `service` or `terraform`.
    management_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_instance: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Returns what a reader sees.
pub fn view(organization: &str, resource: Resource) -> ResourceView {
    let [manager_id, manager_instance, _] = resource.owner.columns().map(|text| text.map(str::to_owned));
    ResourceView {
        management_mode: resource.owner.mode(),
        manager_id,
        manager_instance,
        id: resource.id,
        organization_id: organization.to_owned(),
        name: resource.name,
        access_name: resource.access_name,
        protocol: resource.protocol,
        upstream_host: resource.upstream_host,
        upstream_port: resource.upstream_port,
        upstream_tls: resource.upstream_tls,
        upstream_ca_pem: resource.upstream_ca_pem,
        enabled: resource.enabled,
        transparent_routing: resource.transparent_routing,
        gateway_id: resource.gateway_id,
        created_at: resource.created_at,
        updated_at: resource.updated_at,
    }
}

/// The path of operations on one resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ResourcePath {
    /// The resource.
    pub resource_id: ResourceId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn breaches(change: &Value) -> Vec<String> {
        let mut body = json!({
            "name": "orders", "protocol": "postgres", "upstreamHost": "db.internal", "upstreamPort": 5432,
        });
        let change = change.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(change);
        let body: ResourceBody = serde_json::from_value(body).unwrap();
        let breaches = body.breaches(false);
        breaches.paths().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_definition_is_judged_as_the_contract_says() {
        let none: [&str; 0] = [];
        assert_eq!(breaches(&json!({})), none);
        assert_eq!(breaches(&json!({ "upstreamTls": false })), ["/upstreamTls"]);
        assert_eq!(
            breaches(&json!({ "upstreamTls": false, "protocol": "http" })),
            none
        );
        assert_eq!(breaches(&json!({ "upstreamCaPem": "" })), none);
        assert_eq!(breaches(&json!({ "upstreamCaPem": null })), none);
        assert_eq!(breaches(&json!({ "upstreamCaPem": "hello" })), ["/upstreamCaPem"]);
        assert_eq!(breaches(&json!({ "transparentRouting": true })), ["/gatewayId"]);
        assert_eq!(breaches(&json!({ "gatewayId": "rgw_1" })), ["/gatewayId"]);
        let whole = json!({ "upstreamTls": false, "upstreamCaPem": " x", "upstreamHost": "a b" });
        assert_eq!(
            breaches(&whole),
            [
                "/upstreamHost",
                "/upstreamTls",
                "/upstreamCaPem",
                "/upstreamCaPem"
            ]
        );
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for host in [
            "db.internal",
            "a-b.c_d",
            "10.0.0.1",
            "::1",
            "2001:db8::1",
            "localhost",
        ] {
            assert!(is_host(host), "{host}");
        }
        for text in [
            "a b", "-a.b", "a..b", "a.b.", "db:5432", "http://a", "a/b", "[::1]", "1.2.3", "0x7f.0x1",
        ] {
            assert!(!is_host(text), "{text}");
        }
        assert!(!is_host_name("10.0.0.1") && !is_host_name("2130706433") && is_host_name("10.example"));
    }

    #[test]
    fn an_access_name_is_a_label() {
        let id = ResourceId::from_text("res_01kadh5j9v0000000000abcdef");
        assert_eq!(access_name("Orders DB (EU)", &id), "orders-db-eu-0000abcdef");
        assert_eq!(access_name("注文", &id), "r-0000abcdef");
        assert!(access_name(&"x".repeat(128), &id).len() <= 63);
    }
}

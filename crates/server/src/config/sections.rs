//! The sections of the configuration; each member's text is its documentation in the schema.

use provost_kernel::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the server listens and how it is reached.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// The address and port of the API. Port 0 takes a free one.
    pub listen: String,
    /// Where clients reach this server, for example `https://provost.example.com`. Default: made from `listen`.
    pub public_url: Option<String>,
    /// Hosts, beside that of the public URL and this machine's own names, under which `/mcp` and `/metrics` answer; a page
    /// in a browser must not reach them under a name of its own (DNS rebinding).
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages, beside that of the public URL, from which `/mcp` may be called.
    pub allowed_origins: Vec<String>,
    /// Addresses and ranges of the proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<String>,
    /// A proxy in front of this server terminates TLS; allows plain HTTP on an address that is not loopback.
    pub behind_proxy: bool,
    /// How many requests of one network (an IPv4 address, an IPv6 /64) that have shown no valid token are worked on at a time,
    /// 1 to 512. Behind `trusted_proxies` the forwarded address counts. Not limited while `rate_limits.enabled` is false.
    #[schemars(range(min = 1, max = 512))]
    pub network_requests: usize,
    /// How many connections one network may hold open over which no valid token came, 1 to 65 536; those of `trusted_proxies` are
    /// not counted. Not limited while `rate_limits.enabled` is false.
    #[schemars(range(min = 1, max = 65536))]
    pub network_connections: usize,
    /// PEM file with the TLS certificate and its chain.
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate.
    pub tls_key: Option<PathBuf>,
    /// The address of `/metrics`, or `off`. Default: `127.0.0.1:9464`, left out when that port is taken.
    pub metrics_listen: Option<String>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            behind_proxy: false,
            network_requests: 32,
            network_connections: 64,
            tls_cert: None,
            tls_key: None,
            metrics_listen: None,
        }
    }
}

/// Where the store and its keys are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// The data folder; SQLite keeps `provost.db` there. Default: `./provost-data`.
    pub data_dir: Option<PathBuf>,
    /// A file with the URL of a PostgreSQL database. The URL may hold a password; the file keeps it out of here.
    pub database_url_file: Option<PathBuf>,
    /// Lets the connection to a PostgreSQL database on another machine go without TLS where its URL says so
    /// (`sslmode=disable`, `prefer`, `allow`). Whoever is on the way then reads what the store holds, and changes it.
    pub database_plaintext: bool,
    /// The folder of the keys. Default: `keys` in the data folder; another disk is better.
    pub keys_dir: Option<PathBuf>,
    /// The URL itself, from the environment or a flag; never from the file.
    #[serde(skip)]
    #[schemars(skip)]
    pub database_url: Option<Secret<String>>,
}

/// The rate limits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimits {
    /// Whether callers are limited. Off only for load tests, or where a proxy limits.
    pub enabled: bool,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// How changes are written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Writer {
    /// How many changes one durable commit may carry, 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub max_batch: usize,
    /// How many writers a PostgreSQL store has, 1 to 32; SQLite always has one. Default: 2 to 4, by cores.
    #[schemars(range(min = 1, max = 32))]
    pub threads: Option<usize>,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            max_batch: 64,
            threads: None,
        }
    }
}

/// How the store is read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reader {
    /// How many requests read the store at the same time, 1 to 64. Default: one for each core; with PostgreSQL twice as
    /// many, at least 4. More help where the database is far away, fewer where it shares these cores.
    #[schemars(range(min = 1, max = 64))]
    pub threads: Option<usize>,
}

/// The log on standard error.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// What is logged, for example `info` or `warn,provost_kernel=debug`. Default: `info` for the server, `warn`
    /// for other commands. The environment's short name is `PROVOST_LOG`.
    pub filter: Option<String>,
    /// How lines look.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Human,
    /// One JSON object for each line.
    Json,
}

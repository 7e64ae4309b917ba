//! What the operator decides: file < `PROVOST_…` environment < flags.
//!
//! Unknown keys are refused everywhere. Secrets come by file reference or from the environment, and are never
//! printed. This is the only place that reads the environment.

mod backup;
mod environment;
mod external;
mod history;
mod oauth;
mod s3;
mod sections;
mod sign_in;

pub use backup::BackupStore;
pub use environment::Environment;
pub use external::{ExternalKind, ExternalManager};
pub use history::History;
pub use oauth::{OAuth, OAuthIssuer};
pub use sections::{Http, Log, LogFormat, RateLimits, Reader, Store, Writer};
pub use sign_in::{SignIn, check_public_url, declared as sign_in_providers};

use provost_areas_access::resource_credentials::external::ExternalManagers;
use provost_kernel::Secret;
use provost_kernel::db::{Location, PostgresUrl};
use provost_kernel::expose::edge::{Network, Tls};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use toml::Table;

/// Where `/metrics` is when nobody says where.
pub const METRICS_LISTEN: &str = "127.0.0.1:9464";

/// The whole configuration. Every key has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Configuration of provost")]
pub struct Config {
    /// Where the server listens and how it is reached.
    pub http: Http,
    /// Where the store and its keys are.
    pub store: Store,
    /// The rate limits.
    pub rate_limits: RateLimits,
    /// How the store is read.
    pub reader: Reader,
    /// How changes are written.
    pub writer: Writer,
    /// Where recorded events are kept once they are sealed.
    pub history: History,
    /// How the store of backups is reached.
    pub backup: BackupStore,
    /// Delegated access by OAuth.
    pub oauth: OAuth,
    /// The log.
    pub log: Log,
    /// Secret managers that keep secrets of credentials, each with the organizations that may use it.
    pub external_managers: Vec<ExternalManager>,
}

/// What is wrong with the configuration: one sentence that names the key.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem(pub String);

impl Config {
    /// Reads the file, if one is named, and lays the environment over it. Flags are the caller's.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, Problem> {
        let mut table = match file
            .map(Path::to_path_buf)
            .or_else(|| environment.file().map(PathBuf::from))
        {
            Some(path) => read(&path)?,
            None => Table::new(),
        };
        environment.overlay(&mut table)?;
        let read: Result<Self, _> = serde_path_to_error::deserialize(toml::Value::Table(table));
        let mut config = read.map_err(|error| {
            let (key, cause) = (error.path().to_string(), error.into_inner());
            // The parser shows a piece of the document on further lines.
            let cause = cause.to_string();
            Problem(format!(
                "{key}: {}",
                cause.lines().next().unwrap_or("is not understood")
            ))
        })?;
        config.store.database_url = environment.database_url();
        Ok(config)
    }

    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), Problem> {
        if !(1..=64).contains(&self.writer.max_batch) {
            return Err(Problem("writer.max_batch must be 1 to 64".into()));
        }
        if self
            .writer
            .threads
            .is_some_and(|threads| !(1..=32).contains(&threads))
        {
            return Err(Problem("writer.threads must be 1 to 32".into()));
        }
        if self
            .reader
            .threads
            .is_some_and(|threads| !(1..=64).contains(&threads))
        {
            return Err(Problem("reader.threads must be 1 to 64".into()));
        }
        if !(1..=512).contains(&self.http.network_requests) {
            return Err(Problem("http.network_requests must be 1 to 512".into()));
        }
        if !(1..=65_536).contains(&self.http.network_connections) {
            return Err(Problem("http.network_connections must be 1 to 65536".into()));
        }
        self.http.networks()?;
        self.http.public_url()?;
        self.http.address()?;
        self.http.metrics_address()?;
        self.http.tls()?;
        self.external_managers()?;
        self.history.check()?;
        self.backup.check()?;
        self.oauth.settings()?;
        sign_in_providers(&self.oauth.sign_in)?;
        Ok(())
    }

    /// Returns the declared secret managers; reads their certificate files.
    pub fn external_managers(&self) -> Result<ExternalManagers, Problem> {
        external::declared(&self.external_managers)
    }
}

fn read(path: &Path) -> Result<Table, Problem> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem(format!("the configuration file {shown} cannot be read: {error}")))?;
    text.parse::<Table>().map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Problem(format!(
            "the configuration file {shown} is not TOML: line {line}: {}",
            error.message()
        ))
    })
}

/// Returns the JSON Schema of the file.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<Config>()
        .to_value()
}

impl Http {
    /// Returns the address to listen on.
    ///
    /// Errors: not an address; not loopback without TLS and without a proxy.
    pub fn address(&self) -> Result<SocketAddr, Problem> {
        let address = resolve("http.listen", &self.listen)?;
        if address.ip().is_loopback() || self.behind_proxy || self.tls_cert.is_some() {
            return Ok(address);
        }
        Err(Problem(format!(
            "http.listen: {address} is not a loopback address, and tokens must not travel in plain text; give \
             --tls-cert and --tls-key, or --behind-proxy when a proxy in front terminates TLS"
        )))
    }

    /// Returns the address of the metrics, and whether the operator chose it; `None` when they are off.
    pub fn metrics_address(&self) -> Result<Option<(SocketAddr, bool)>, Problem> {
        match self.metrics_listen.as_deref() {
            Some("off") => Ok(None),
            Some(address) => Ok(Some((resolve("http.metrics_listen", address)?, true))),
            None => Ok(Some((resolve("http.metrics_listen", METRICS_LISTEN)?, false))),
        }
    }

    /// Returns a sentence where a proxy in front is not named: then every caller has its address.
    pub fn unnamed_proxy(&self) -> Option<&'static str> {
        (self.behind_proxy && self.trusted_proxies.is_empty()).then_some(
            "http.behind_proxy is set and http.trusted_proxies is empty: every caller counts as the proxy, so that the failures of one \
             are limited for all, and the audit log shows the proxy's address; name the proxy's addresses in http.trusted_proxies",
        )
    }

    /// Returns the proxies whose word is believed.
    pub fn networks(&self) -> Result<Vec<Network>, Problem> {
        let parse = |text: &String| {
            text.parse()
                .map_err(|error| Problem(format!("http.trusted_proxies: {error}")))
        };
        self.trusted_proxies.iter().map(parse).collect()
    }

    /// Returns the TLS files.
    pub fn tls(&self) -> Result<Tls, Problem> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Ok(Tls::Files {
                cert: cert.clone(),
                key: key.clone(),
            }),
            (None, None) => Ok(Tls::Off),
            (Some(_), None) => Err(Problem(
                "http.tls_key is missing: the certificate needs its private key".into(),
            )),
            (None, Some(_)) => Err(Problem(
                "http.tls_cert is missing: the private key needs its certificate".into(),
            )),
        }
    }

    /// Returns where clients reach the server, without a trailing slash, when the operator says so.
    pub fn public_url(&self) -> Result<Option<String>, Problem> {
        let Some(url) = &self.public_url else {
            return Ok(None);
        };
        let url = url.trim_end_matches('/');
        let rest = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        let is_plain = |rest: &str| {
            !rest.is_empty()
                && !rest.contains(['?', '#', '@', '"', '\\'])
                && rest.bytes().all(|b| b.is_ascii_graphic())
        };
        if rest.is_some_and(is_plain) {
            return Ok(Some(url.to_owned()));
        }
        Err(Problem("http.public_url must begin with https:// or http:// and name a host, without user, query or fragment".into()))
    }
}

fn resolve(key: &str, text: &str) -> Result<SocketAddr, Problem> {
    let wrong = || {
        Problem(format!(
            "{key}: expected an address and a port such as 127.0.0.1:8080, not {text:?}"
        ))
    };
    text.to_socket_addrs()
        .map_err(|_| wrong())?
        .next()
        .ok_or_else(wrong)
}

impl Store {
    /// Returns the data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir
            .clone()
            .unwrap_or_else(|| PathBuf::from("provost-data"))
    }

    /// Returns the keys folder, and whether it lies where a copy of the data would take the keys along.
    pub fn keys_dir(&self) -> (PathBuf, bool) {
        match &self.keys_dir {
            Some(dir) => (dir.clone(), dir.starts_with(self.data_dir())),
            None => (self.data_dir().join("keys"), true),
        }
    }

    /// Returns where the store is; reads the file that holds the database's URL.
    ///
    /// Errors: a URL that cannot be read, or that lets the connection do without TLS where nobody allowed it.
    pub fn location(&self) -> Result<Location, Problem> {
        if let Some(url) = &self.database_url {
            return self.postgres(url.clone());
        }
        let Some(path) = &self.database_url_file else {
            return Ok(Location::Sqlite(self.data_dir().join("provost.db")));
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            Problem(format!(
                "store.database_url_file: {} cannot be read: {error}",
                path.display()
            ))
        })?;
        let url = text.trim();
        if url.is_empty() || url.lines().count() > 1 {
            return Err(Problem(format!(
                "store.database_url_file: {} must hold one line, the URL",
                path.display()
            )));
        }
        self.postgres(Secret::new(url.to_owned()))
    }

    fn postgres(&self, url: Secret<String>) -> Result<Location, Problem> {
        let url = PostgresUrl::new(url).allow_plaintext(self.database_plaintext);
        url.check().map_err(Problem)?;
        Ok(Location::Postgres(url))
    }
}

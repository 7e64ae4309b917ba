//! `provost serve`.
//!
//! ```text
//! configuration · TLS files · folder lock · keys · port · store · audit log · first organization · ready
//! signal → accept nothing · in-flight requests ≤ 10 s · background work · buffers · storage threads · exit 0
//! ```
//!
//! What can be refused is refused before anything is made.

mod first;
mod service_manager;
pub(super) mod stop;
mod token_file;

use super::failure::{Failure, Outcome};
use super::lock::{self, FolderLock};
use super::store_flags::{Absent, StoreFlags, StoreLocation, close_store, make_private};
use super::{logging, metrics};
use crate::config::{Config, Environment, check_public_url, sign_in_providers};
use crate::{app, background, closing, mcp};
use clap::Parser;
use provost_areas_platform::audit::{self, ForeignStorePolicy};
use provost_areas_platform::identity;
use provost_areas_policy::modules::Workers;
use provost_kernel::db::Location;
use provost_kernel::expose::edge::{Allowance, Certificates, Edge, EdgeSettings, Tls, serve};
use provost_kernel::expose::http::BodyLimits;
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::supervisor::Supervisor;
use provost_kernel::time::{Clock, SystemClock};
use provost_kernel::{Kernel, Timestamp};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How often the log repeats what should not be forgotten.
const REMINDER: Duration = Duration::from_hours(1);

/// How long background work may take to end after a stop.
const BACKGROUND_GRACE: Duration = Duration::from_secs(5);

/// Run the server.
///
/// On an empty store the first organization and its admin account are made. The token is printed once on a terminal, and else written
/// into a new file, `first-token` in the data folder, which the log names.
/// SIGTERM and SIGINT stop it gracefully; a second signal ends it at once. SIGHUP reads the TLS certificate and its key anew.
#[derive(clap::Parser)]
#[expect(clippy::doc_markdown, reason = "the texts are shown as they are, in the help")]
#[command(
    name = "serve",
    after_help = "Examples:
  provost serve
  provost serve --listen 0.0.0.0:8443 --tls-cert server.pem --tls-key server.key
  provost serve --database-url-file /run/secrets/database-url --keys-dir /etc/provost/keys
  provost serve --listen 0.0.0.0:8080 --behind-proxy --public-url https://provost.example.com"
)]
pub struct Serve {
    /// Listen on this address; port 0 takes a free one [env: PROVOST_HTTP_LISTEN] [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Serve TLS with this certificate and chain, a PEM file [env: PROVOST_HTTP_TLS_CERT]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file [env: PROVOST_HTTP_TLS_KEY]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front terminates TLS; allows plain HTTP on any address [env: PROVOST_HTTP_BEHIND_PROXY]
    #[arg(long)]
    behind_proxy: bool,
    /// Where clients reach this server [env: PROVOST_HTTP_PUBLIC_URL] [default: made from --listen]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Serve /metrics on this address, or `off` [env: PROVOST_HTTP_METRICS_LISTEN] [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,
    /// Write the first token into this new file, which nobody else can read [default: standard output on a terminal, else
    /// first-token in the data folder]
    #[arg(long, value_name = "FILE")]
    bootstrap_token_file: Option<PathBuf>,
    /// The name of the first organization [default: "Default organization", with the key `default`]
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// Who is told the address once requests are answered, instead of the log.
    #[arg(skip)]
    on_ready: Option<Sender<String>>,
}

/// Sees to it that a crash writes no memory to a disk: it holds keys, and tokens of requests in freed buffers.
///
/// Who needs a core dump attaches a debugger, or gives the running process another limit as root.
fn forbid_core_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps cannot be forbidden: a crash may write secrets to a disk");
    }
}

/// What the allocator reads before the program begins: after how many milliseconds freed memory goes back to the system.
const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// Has freed memory go back to the system at once, unless somebody said otherwise; by default the allocator keeps so much
/// that a server under load grows by half within a quarter of an hour.
///
/// The allocator takes no other word for it than the environment of a new program, so that this one begins again as itself,
/// before it has opened anything. Where it cannot, it goes on as it is.
pub(super) fn give_memory_back() {
    if std::env::var_os(PURGE_DELAY).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut words = std::env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    // It returns if it fails, and only then.
    drop(again.args(words).env(PURGE_DELAY, "0").exec());
}

impl Serve {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        give_memory_back();
        self.run_with(&self.configure()?)
    }

    /// Returns a server that tells its address to `on_ready` and is otherwise as no flag makes it.
    pub(super) fn telling(on_ready: Sender<String>) -> Result<Self, Failure> {
        let flags = Self::try_parse_from(["serve"]).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self {
            on_ready: Some(on_ready),
            ..flags
        })
    }

    /// Serves as `config` says, whatever the flags and the environment are, until a signal ends it.
    pub(super) fn run_with(&self, config: &Config) -> Outcome {
        config.check()?;
        logging::start(&config.log, logging::SERVER)?;
        forbid_core_dumps();
        let certificates = config.http.tls()?.certificates()?;
        warn_of_end(certificates.as_ref(), SystemClock::new().now());
        let tls = certificates.clone().map_or(Tls::Off, Tls::Read);
        let _lock = take_folder(config)?;
        let place = StoreLocation::find(config, Absent::Make)?;
        if config.store.keys_dir().1 && place.data_dir.is_some() {
            tracing::info!(
                "the keys lie inside the data folder; another disk (--keys-dir) keeps a copied folder harmless"
            );
        }
        if !config.rate_limits.enabled {
            tracing::warn!("rate limits are off");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .worker_threads(cores())
            .build();
        let runtime =
            runtime.map_err(|error| Failure::new(format!("no runtime could be started: {error}")))?;
        let listener = runtime.block_on(listen(config.http.address()?))?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::new(format!("no local address: {error}")))?;
        let url = config.http.public_url()?.unwrap_or_else(|| url(&tls, address));
        check_public_url(&config.oauth.sign_in, &url)?;
        // Storage threads are started outside the runtime: they drive runtimes of their own.
        let extras = Extras::default()
            .with(config.external_managers()?)
            .with(mcp::Names {
                hosts: config.http.allowed_hosts.clone(),
                origins: config.http.allowed_origins.clone(),
            })
            .with(config.oauth.settings()?)
            .with(workers()?)
            .with(sign_in_providers(&config.oauth.sign_in)?)
            .with(config.history.open(&config.store.data_dir(), runtime.handle())?);
        let location = place.location.clone();
        let kernel = place.start_with(settings(config, url.clone())?, extras)?;
        if let Some(workers) = kernel.extra::<Workers>() {
            workers.begin();
        }
        let stopped = kernel.clone();
        let server = Server {
            config,
            certificates,
            tls,
            listener,
            address,
            url,
            kernel,
        };
        let outcome = runtime.block_on(server.run(self));
        runtime.shutdown_background();
        // Nothing of this process writes any more. Without the mark the store is whole as well.
        if outcome.is_ok()
            && let Err(error) = closing::mark(stopped.areas(), &location, &stopped.keys)
        {
            tracing::warn!(%error, cause = error.private(), "the store could not be marked as closed");
        }
        outcome
    }

    fn configure(&self) -> Result<Config, Failure> {
        let mut config = self.store.load()?;
        let http = &mut config.http;
        let set = |to: &mut Option<PathBuf>, from: &Option<PathBuf>| {
            if from.is_some() {
                to.clone_from(from);
            }
        };
        set(&mut http.tls_cert, &self.tls_cert);
        set(&mut http.tls_key, &self.tls_key);
        if let Some(listen) = &self.listen {
            http.listen.clone_from(listen);
        }
        http.behind_proxy |= self.behind_proxy;
        if self.public_url.is_some() {
            http.public_url.clone_from(&self.public_url);
        }
        if self.metrics_listen.is_some() {
            http.metrics_listen.clone_from(&self.metrics_listen);
        }
        Ok(config)
    }
}

fn workers() -> Result<Workers, Failure> {
    Workers::own().map_err(|error| Failure::new(format!("the program cannot find its own image: {error}")))
}

struct Server<'a> {
    config: &'a Config,
    certificates: Option<Certificates>,
    tls: Tls,
    listener: TcpListener,
    address: SocketAddr,
    url: String,
    kernel: Arc<Kernel>,
}

impl Server<'_> {
    async fn run(self, flags: &Serve) -> Outcome {
        let mut signals = stop::Signals::listen()?;
        let (stop, supervisor) = (CancellationToken::new(), Supervisor::new());
        let (kernel, certificates) = (self.kernel.clone(), self.certificates.clone());
        let serving = self.serve(flags, stop.clone(), &supervisor);
        let mut serving = std::pin::pin!(serving);
        loop {
            tokio::select! {
                outcome = serving.as_mut() => return outcome,
                signal = signals.next() => {
                    let name = match signal {
                        stop::SignalRequest::ReadAnew => {
                            read_anew(certificates.as_ref(), kernel.clock.now());
                            continue;
                        }
                        stop::SignalRequest::Stop(name) => name,
                    };
                    if stop.is_cancelled() {
                        // Nothing may wait any more, not even the storage threads' end.
                        std::mem::forget(kernel);
                        return Err(Failure::new(format!("{name} again: stopped without waiting")));
                    }
                    tracing::info!("{name}: stopping");
                    service_manager::stopping();
                    stop.cancel();
                }
            }
        }
    }

    async fn serve(self, flags: &Serve, stop: CancellationToken, supervisor: &Supervisor) -> Outcome {
        let kernel = self.kernel.clone();
        let outcome = self.until_stopped(flags, stop, supervisor).await;
        let overdue = supervisor.stop(BACKGROUND_GRACE).await;
        if !overdue.is_empty() {
            tracing::warn!(?overdue, "background work was cut off");
        }
        background::finish(&kernel).await;
        kernel.stop().await;
        if outcome.is_ok() {
            tracing::info!("stopped");
        }
        outcome
    }

    async fn until_stopped(self, flags: &Serve, stop: CancellationToken, supervisor: &Supervisor) -> Outcome {
        let Self {
            config,
            certificates,
            tls,
            listener,
            address,
            url,
            kernel,
        } = self;
        audit::verify_start(&kernel, ForeignStorePolicy::Refuse).await?;
        remind(config, certificates.as_ref(), &kernel, supervisor);
        metrics::start(config, &kernel, supervisor, certificates).await?;
        let place = first::TokenPlace::find(flags.bootstrap_token_file.as_deref(), config);
        let mut first = first::make(&kernel, flags.organization.as_deref(), &place, config, &url).await?;
        // On a terminal it stands below what is logged, where somebody looks.
        if let Some(first) = first.take_if(|_| !first::is_on_terminal()) {
            first.tell(&kernel).await?;
        }
        if let Err(error) = background::start(&kernel, supervisor) {
            // The token is shown before the end, or it would be lost.
            if let Some(first) = first {
                first.tell(&kernel).await?;
            }
            return Err(error.into());
        }
        let settings = EdgeSettings {
            trusted_proxies: config.http.networks()?,
            tls_is_ours: !matches!(tls, Tls::Off),
            allowance: config.rate_limits.enabled.then_some(Allowance {
                requests: config.http.network_requests,
                connections: config.http.network_connections,
            }),
            ..app::edge_settings()
        };
        let reading = BodyLimits {
            max_body_bytes: settings.max_body_bytes,
            timeout: settings.request_timeout,
        };
        let edge = Edge::new(settings.clone(), kernel.clock.clone(), kernel.entropy.clone());
        let router = edge.wrap(app::router(&kernel, reading));
        if let Some(on_ready) = &flags.on_ready {
            // Who asked may have gone since.
            drop(on_ready.send(url));
        } else {
            let scheme = if settings.tls_is_ours { "https" } else { "http" };
            tracing::info!(target: logging::ANNOUNCE, "listening on {scheme}://{address}");
            tracing::info!(target: logging::ANNOUNCE, "ready");
        }
        service_manager::ready(supervisor);
        if let Some(first) = first {
            logging::flush();
            first.tell(&kernel).await?;
        }
        Ok(serve(listener, router, &settings, tls, stop).await?)
    }
}

/// Says now, and every hour, what is no reason to refuse a start and should not be forgotten.
fn remind(
    config: &Config,
    certificates: Option<&Certificates>,
    kernel: &Arc<Kernel>,
    supervisor: &Supervisor,
) {
    let unnamed = config.http.unnamed_proxy();
    if let Some(sentence) = unnamed {
        tracing::warn!("{sentence}");
    }
    if let Some(sentence) = Environment::of_process().unread() {
        tracing::warn!("{sentence}");
    }
    let (certificates, kernel, stop) = (certificates.cloned(), kernel.clone(), supervisor.token());
    supervisor.spawn("reminders", async move {
        first::warn_of_end(&kernel).await;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REMINDER) => {}
            }
            if let Some(sentence) = unnamed {
                tracing::warn!("{sentence}");
            }
            if identity::is_rehearsal(&kernel) {
                tracing::warn!("{}", identity::REHEARSAL);
            }
            warn_of_end(certificates.as_ref(), kernel.clock.now());
            first::warn_of_end(&kernel).await;
        }
    });
}

/// Reads the TLS certificate and its key anew, which a program that renews them asks for with a signal. What cannot be used
/// changes nothing (TC-1).
fn read_anew(certificates: Option<&Certificates>, now: Timestamp) {
    let Some(certificates) = certificates else {
        tracing::info!("SIGHUP: there is no TLS certificate to read anew");
        return;
    };
    match certificates.read_anew(now) {
        Ok(()) => {
            tracing::info!("SIGHUP: the TLS certificate and its key were read anew");
            warn_of_end(Some(certificates), now);
        }
        Err(error) => tracing::error!(
            cause = error.private(),
            "SIGHUP: {error}; the TLS certificate and the key that were read before stay in use: correct the files and send \
             SIGHUP again"
        ),
    }
}

/// Warns of a certificate that nobody accepts any more.
fn warn_of_end(certificates: Option<&Certificates>, now: Timestamp) {
    if let Some(end) = certificates
        .and_then(Certificates::expires_at)
        .filter(|end| *end <= now)
    {
        tracing::warn!(
            "the TLS certificate expired at {}: clients refuse it; renew it and send SIGHUP",
            end.to_rfc3339()
        );
    }
}

fn take_folder(config: &Config) -> Result<Option<FolderLock>, Failure> {
    match config.store.location()? {
        Location::Sqlite(file) => {
            let dir = config.store.data_dir();
            make_private(&dir)?;
            let lock = lock::take(&dir)?;
            close_store(&file);
            Ok(Some(lock))
        }
        // Any number of servers may share a database.
        Location::Postgres(_) => Ok(None),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::new(format!("{address} cannot be listened on: {error}")))
}

/// Returns the URL under which this machine reaches the server.
fn url(tls: &Tls, address: SocketAddr) -> String {
    let scheme = if matches!(tls, Tls::Off) { "http" } else { "https" };
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("{scheme}://{host}:{}", address.port())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

fn settings(config: &Config, public_url: String) -> Result<Settings, Failure> {
    // A PostgreSQL reader waits for the database half of its time, a SQLite reader works.
    let readers = match config.store.location()? {
        Location::Sqlite(_) => cores(),
        Location::Postgres(_) => (2 * cores()).max(4),
    };
    Ok(Settings {
        public_url,
        rate_limits: config.rate_limits.enabled,
        max_batch: config.writer.max_batch,
        readers: config.reader.threads.unwrap_or(readers),
        writers: config.writer.threads.unwrap_or_else(|| cores().clamp(2, 4)),
        ..Settings::default()
    })
}

//! `/metrics` for Prometheus, on an address of its own. No label names an organization or a principal.

use super::failure::Failure;
use super::{ages, figures, logging};
use crate::config::Config;
use crate::mcp;
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::get;
use http::header;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use provost_areas_platform::identity;
use provost_kernel::Kernel;
use provost_kernel::expose::edge::{Certificates, Edge, EdgeSettings, RequestId, Tls, respond, serve};
use provost_kernel::supervisor::Supervisor;
use provost_mcp::Guard;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Upper bounds of the request histogram. Units: seconds.
const SECONDS: [f64; 13] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Upper bounds of the histogram of judging. Units: seconds.
const JUDGING_SECONDS: [f64; 15] = [
    0.000_001, 0.000_002, 0.000_005, 0.000_01, 0.000_02, 0.000_03, 0.000_05, 0.000_075, 0.000_1, 0.000_2,
    0.000_5, 0.001, 0.01, 0.1, 1.0,
];

/// How often the histograms are folded together when nobody asks for them.
const UPKEEP: Duration = Duration::from_secs(10);

/// Starts counting and serving the counts, unless metrics are off.
///
/// Errors: the address that the operator chose cannot be used. When nobody chose one, a taken port is no
/// error: several servers of one machine would otherwise need a flag each.
pub async fn start(
    config: &Config,
    kernel: &Arc<Kernel>,
    supervisor: &Supervisor,
    certificates: Option<Certificates>,
) -> Result<(), Failure> {
    let Some((address, is_chosen)) = config.http.metrics_address()? else {
        return Ok(());
    };
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) if is_chosen => {
            return Err(Failure::new(format!(
                "http.metrics_listen: {address} cannot be listened on: {error}"
            )));
        }
        Err(error) => {
            tracing::warn!("no metrics are served: {address} cannot be listened on: {error}");
            return Ok(());
        }
    };
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("provost_request_seconds".into()), &SECONDS)
        .and_then(|builder| {
            let judging = Matcher::Full("provost_decision_judge_seconds".into());
            builder.set_buckets_for_metric(judging, &JUDGING_SECONDS)
        })
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| Failure::new(format!("the metrics cannot be started: {error}")))?;
    describe(kernel);
    let is_unnamed = config.http.unnamed_proxy().is_some();
    metrics::gauge!("provost_proxy_unnamed").set(f64::from(u8::from(is_unnamed)));
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!("metrics on http://{address}/metrics");
    let settings = EdgeSettings::default();
    let edge = Edge::new(settings.clone(), kernel.clock.clone(), kernel.entropy.clone());
    let router = edge.wrap(router(
        handle.clone(),
        kernel.clone(),
        certificates,
        config.store.data_dir(),
        guard(kernel, address),
    ));
    ages::start(kernel, supervisor);
    let stop = supervisor.token();
    supervisor.spawn("metrics", async move {
        if let Err(error) = serve(listener, router, &settings, Tls::Off, stop).await {
            tracing::warn!("metrics ended: {error}");
        }
    });
    let stop = supervisor.token();
    supervisor.spawn("metrics-upkeep", async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(UPKEEP) => handle.run_upkeep(),
            }
        }
    });
    Ok(())
}

fn describe(kernel: &Kernel) {
    figures::describe();
    // Who counts an increase needs the nothing that was before it.
    metrics::counter!("provost_ends_unwritten_total").increment(0);
    metrics::counter!("provost_rights_unproven_total").increment(0);
    metrics::gauge!("provost_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    metrics::gauge!("process_start_time_seconds").set(seconds(kernel.clock.now().as_ms()));
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 fit into 52 bits for 140 000 years"
)]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// Returns who may be named: the hosts of `/mcp`, and beyond this machine every address, because whoever collects figures there
/// often knows no name.
fn guard(kernel: &Kernel, address: SocketAddr) -> Guard {
    let (hosts, origins) = mcp::names(kernel);
    let guard = Guard::new(&hosts, &origins);
    if address.ip().is_loopback() {
        return guard;
    }
    guard.or_any_address()
}

fn router(
    handle: PrometheusHandle,
    kernel: Arc<Kernel>,
    certificates: Option<Certificates>,
    data_dir: PathBuf,
    guard: Guard,
) -> Router {
    let guard = Arc::new(guard);
    let answer = move |request: Request| {
        // INVARIANT ME-5: a page in somebody's browser must not read the figures under a name of its own.
        let response = match guard.check(request.uri(), request.headers()) {
            Ok(()) => {
                measure(&kernel, certificates.as_ref());
                ages::measure(&data_dir, kernel.clock.now());
                let form = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
                (form, handle.render()).into_response()
            }
            Err(error) => {
                let id = request.extensions().get::<RequestId>().cloned();
                let id = id.unwrap_or_else(|| RequestId(String::new()));
                respond(&error, &id, request.headers().get(header::ACCEPT))
            }
        };
        std::future::ready(response)
    };
    Router::new().route("/metrics", get(answer))
}

/// Gauges are read when somebody looks.
#[expect(
    clippy::cast_precision_loss,
    reason = "gauges are floats; these numbers are far below 2^52"
)]
fn measure(kernel: &Kernel, certificates: Option<&Certificates>) {
    if let Some(end) = certificates.and_then(Certificates::expires_at) {
        let left = end.as_ms() - kernel.clock.now().as_ms();
        metrics::gauge!("provost_tls_certificate_expires_in_seconds").set(seconds(left));
    }
    metrics::gauge!("provost_waiting_units").set(kernel.waiting_units() as f64);
    metrics::gauge!("provost_store_broken").set(f64::from(u8::from(kernel.is_broken())));
    metrics::gauge!("provost_store_rehearsal").set(f64::from(u8::from(identity::is_rehearsal(kernel))));
    metrics::counter!("provost_log_lines_lost_total").absolute(logging::lost_lines());
    if let Some(bytes) = resident_bytes() {
        metrics::gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        metrics::gauge!("process_open_fds").set(open.count() as f64);
    }
}

/// Linux says it in KiB; elsewhere the gauge is absent.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(kib * 1024)
}

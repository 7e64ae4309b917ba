//! Sockets: accepting, serving, stopping.

use super::address::{Network, Peer};
use super::guard::{Guard, Protocol};
use super::link::{InFlight, Link};
use super::settings::EdgeSettings;
use super::share::{Member, Share};
use super::tls::{Certificates, Tls};
use crate::Result;
use axum::body::Body;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// LIMIT: 128 requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;
/// How often an HTTP/2 peer is asked whether it is still there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(20);
/// How long accepting rests when the process has no file descriptor or memory left.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves the router, which went through [`super::Edge::wrap`], until `stop` is cancelled.
///
/// After the stop nothing new is accepted, idle connections close, and requests in flight have
/// `settings.shutdown_grace` to finish. No task is left when it returns.
///
/// Errors: `Internal` when the TLS files cannot be used; nothing is accepted then.
pub async fn serve(
    listener: TcpListener,
    router: axum::Router,
    settings: &EdgeSettings,
    tls: Tls,
    stop: CancellationToken,
) -> Result<()> {
    let server = Arc::new(Server::new(router, settings, tls.certificates()?, stop.clone()));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let link = Link::new(server.join(peer));
                let connection = Arc::clone(&server).connect(stream, peer, Arc::clone(&link));
                server
                    .tasks
                    .spawn(server.until_killed(while_welcome(link, connection)));
                // Of many that come together each may say who it is before the next ones push it out of its share.
                tokio::task::yield_now().await;
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted now");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(ACCEPT_REST) => {}
                }
            }
        }
    }
    drop(listener);
    server.tasks.close();
    if tokio::time::timeout(settings.shutdown_grace, server.tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            tasks = server.tasks.len(),
            "requests outlived the shutdown grace and are cut off"
        );
        server.kill.cancel();
        server.tasks.wait().await;
    }
    Ok(())
}

/// Everything that the connections of one listener share.
struct Server {
    router: axum::Router,
    settings: EdgeSettings,
    tls: Option<Certificates>,
    share: Option<Arc<Share>>,
    http_1: auto::Builder<Executor>,
    http_2: auto::Builder<Executor>,
    tasks: TaskTracker,
    stop: CancellationToken,
    kill: CancellationToken,
}

impl Server {
    fn new(
        router: axum::Router,
        settings: &EdgeSettings,
        tls: Option<Certificates>,
        stop: CancellationToken,
    ) -> Self {
        let (tasks, kill) = (TaskTracker::new(), CancellationToken::new());
        let mut builder = auto::Builder::new(Executor {
            tasks: tasks.clone(),
            kill: kill.clone(),
        });
        // The guard has its own clock for heads.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
        // The defenses against rapid resets are on by default. The header list is advertised and cut at
        // four times our limit, so that our own check sees what is a little too large.
        let advertised = u32::try_from(settings.max_header_bytes * 4).unwrap_or(u32::MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(advertised)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING);
        Self {
            router,
            share: settings
                .allowance
                .map(|allowance| Share::new("connections", allowance.connections)),
            settings: settings.clone(),
            tls,
            http_1: builder.clone().http1_only(),
            http_2: builder.http2_only(),
            tasks,
            stop,
            kill,
        }
    }

    fn until_killed<F: Future<Output = ()>>(&self, future: F) -> impl Future<Output = ()> + use<F> {
        let kill = self.kill.clone();
        async move {
            tokio::select! {
                () = kill.cancelled() => {}
                () = future => {}
            }
        }
    }

    /// Counts a connection in the share of its network; those of trusted proxies are in none.
    fn join(&self, peer: SocketAddr) -> Option<Member> {
        let is_trusted = |network: &Network| network.contains(peer.ip());
        let share = self.share.as_ref()?;
        (!self.settings.trusted_proxies.iter().any(is_trusted)).then(|| share.join(peer.ip()))
    }

    async fn connect(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, link: Arc<Link>) {
        // Without this a small response can wait 40 ms for an acknowledgement.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.talk(stream, peer, link).await;
        };
        let handshake = tokio::time::timeout(self.settings.request_timeout, tls.acceptor().accept(stream));
        tokio::select! {
            () = self.stop.cancelled() => {}
            outcome = handshake => match outcome {
                Ok(Ok(stream)) => self.talk(stream, peer, link).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            }
        }
    }

    async fn talk<S>(&self, stream: S, peer: SocketAddr, link: Arc<Link>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut guard = Guard::new(stream, Arc::clone(&link), &self.settings);
        let protocol = tokio::select! {
            () = self.stop.cancelled() => return,
            protocol = tokio::time::timeout(self.settings.keep_alive, guard.protocol()) => protocol,
        };
        let Ok(Ok(Some(protocol))) = protocol else {
            return;
        };
        let is_http_1 = protocol == Protocol::Http1;
        let builder = if is_http_1 { &self.http_1 } else { &self.http_2 };
        let service = {
            let (router, link) = (self.router.clone(), Arc::clone(&link));
            hyper::service::service_fn(move |request| {
                answer(router.clone(), Arc::clone(&link), request, peer, is_http_1)
            })
        };
        let mut connection = pin!(builder.serve_connection(TokioIo::new(guard), service));
        let mut is_closing = false;
        let mut idle_until = link.idle_until(self.settings.keep_alive);
        loop {
            tokio::select! {
                // First what has arrived, so that a request that came before the stop is answered.
                biased;
                outcome = connection.as_mut() => {
                    if let Err(error) = outcome {
                        tracing::debug!(%peer, %error, "a connection ended with an error");
                    }
                    return;
                }
                () = self.stop.cancelled(), if !is_closing => {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = tokio::time::sleep_until(idle_until), if !is_closing => {
                    let now = tokio::time::Instant::now();
                    idle_until = link.idle_until(self.settings.keep_alive);
                    if idle_until <= now {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                        idle_until = now + self.settings.request_timeout;
                    }
                }
            }
        }
    }
}

/// What a request came over, for the edge.
#[derive(Clone)]
pub(super) struct Connection(pub(super) Arc<Link>);

/// Runs a connection until it ends or another one of its network takes its place.
async fn while_welcome(link: Arc<Link>, connection: impl Future<Output = ()>) {
    let closed = link.closed();
    // The place is free when this ends, in whatever way: others may remember the link for longer.
    let _end = End(link);
    let Some(closed) = closed else {
        return connection.await;
    };
    tokio::select! {
        biased;
        () = closed.cancelled() => {}
        () = connection => {}
    }
}

struct End(Arc<Link>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.leave_share();
    }
}

async fn answer(
    router: axum::Router,
    link: Arc<Link>,
    request: Request<Incoming>,
    peer: SocketAddr,
    is_http_1: bool,
) -> Result<Response<CountedBody>, Infallible> {
    let in_flight = link.begin();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer));
    request.extensions_mut().insert(Connection(Arc::clone(&link)));
    let mut closes = false;
    if is_http_1 {
        let call = link.call();
        closes = call.is_last;
        if let Some(refusal) = call.refusal {
            request.extensions_mut().insert(refusal);
        }
    }
    let mut response = router.oneshot(request).await?;
    if closes {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| CountedBody {
        body,
        _in_flight: in_flight,
    }))
}

/// A response body that keeps its connection busy until it is sent or given up.
struct CountedBody {
    body: Body,
    _in_flight: InFlight,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(ctx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Runs what an HTTP/2 connection starts, as tasks of this server.
#[derive(Clone)]
struct Executor {
    tasks: TaskTracker,
    kill: CancellationToken,
}

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, future: F) {
        let kill = self.kill.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = kill.cancelled() => {}
                _ = future => {}
            }
        });
    }
}

/// Whether `accept` failed because of the connection that it was about to return.
fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

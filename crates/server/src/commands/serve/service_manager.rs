//! What systemd is told of a unit with `Type=notify`: that the server is ready, that it lives, that it stops.
//!
//! Where nothing started it that listens (`NOTIFY_SOCKET` is not set), nothing is told.

use provost_kernel::supervisor::Supervisor;
use sd_notify::NotifyState;

/// Says that requests are answered from now on, and, where the unit has a watchdog, that the server lives, twice as often as it is asked
/// for. A server that hangs says nothing, and is started anew.
pub fn ready(supervisor: &Supervisor) {
    tell(NotifyState::Ready);
    let Some(patience) = sd_notify::watchdog_enabled() else {
        return;
    };
    let stop = supervisor.token();
    supervisor.spawn("watchdog", async move {
        loop {
            tell(NotifyState::Watchdog);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(patience / 2) => {}
            }
        }
    });
}

/// Says that the server stops.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager cannot be told how the server is");
    }
}

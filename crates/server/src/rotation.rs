//! How new keys come into use while servers run (ADR 0076).
//!
//! ```text
//! keys rotate      a key that waits      every server reads it within 15 s, and writes down that it has
//! keys activate    its mark goes         every server uses it within 15 s, once the store knows it (KY-2)
//! ```
//!
//! INVARIANT KY-3: a key that waits is put to use without an operator's word only ten minutes after every running
//! server has read it, and with an operator's word only once all have read it. A server that was silent for five
//! minutes does not run.
//! Keeps KY-2.

use provost_areas_platform::store;
use provost_kernel::audit::hex;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::doubt::SureTime;
use provost_kernel::error::{Error, Result};
use provost_kernel::supervisor::Supervisor;
use provost_kernel::{Kernel, Timestamp, params, statements};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a server reads the folder of keys again.
const PAUSE: Duration = Duration::from_secs(15);
/// How often a server says that it runs.
const SAY_SECS: i64 = 60;
/// After how many seconds without a word a server does not run.
const SILENT_SECS: i64 = 300;
/// How many seconds every running server has had a key before it is used without an operator's word.
const PATIENCE_SECS: i64 = 600;

statements! {
    /// Which keys the servers have read that were seen since.
    READERS = "SELECT keys, since FROM key_readers WHERE seen_at >= ?1 ORDER BY server_id";
    /// Says which keys a server has read.
    PUT_READER = "INSERT INTO key_readers (server_id, keys, since, seen_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (server_id) DO UPDATE SET keys = excluded.keys, since = excluded.since, seen_at = excluded.seen_at";
    /// Forgets a server that stops.
    DROP_READER = "DELETE FROM key_readers WHERE server_id = ?1";
    /// Forgets servers that stopped without a word.
    DROP_SILENT = "DELETE FROM key_readers WHERE seen_at < ?1";
}

/// What a running server has read.
pub struct Reader {
    keys: Vec<String>,
    since: Timestamp,
}

/// Returns what each running server has read.
///
/// Errors: those of the store.
pub fn readers(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<Reader>> {
    let seen_since = now.plus_secs(-SILENT_SECS);
    tx.query(&READERS, params![seen_since], |row| {
        Ok(Reader {
            keys: serde_json::from_str(row.str(0)?).map_err(Error::internal)?,
            since: row.get(1)?,
        })
    })
}

impl Reader {
    /// Says whether the server has read the key of a fingerprint.
    pub fn has(&self, fingerprint: &str) -> bool {
        self.keys.iter().any(|known| known == fingerprint)
    }
}

/// One server's part.
pub struct Rotation {
    server: String,
    said: Mutex<Option<Announcement>>,
}

/// What a server wrote down last.
#[derive(Clone)]
struct Announcement {
    keys: Vec<String>,
    since: Timestamp,
    at: Timestamp,
}

impl Rotation {
    /// Makes the part of a server that was just started.
    pub fn new(kernel: &Kernel) -> Self {
        let mut id = [0; 16];
        kernel.rng().fill(&mut id);
        Self {
            server: hex(&id),
            said: Mutex::default(),
        }
    }

    /// Reads the folder again, uses what was activated, says what was read, and activates what has waited long enough.
    ///
    /// Errors: those of the folder and of the store.
    pub async fn round(&self, kernel: &Arc<Kernel>) -> Result<()> {
        let shared = kernel.clone();
        let news = kernel.blocking(move || shared.keys.news()).await??;
        for (label, value) in news.activated {
            adopt(kernel, label, value).await?;
        }
        self.say(kernel).await?;
        if news.pending.is_empty() {
            return Ok(());
        }
        let Some(now) = kernel.undoubted().await? else {
            return Ok(());
        };
        let now = now.instant();
        let readers = kernel.read_system(move |tx| readers(tx, now)).await?;
        let read_before = now.plus_secs(-PATIENCE_SECS);
        for id in &news.pending {
            let Some(fingerprint) = kernel.keys.fingerprint(id) else {
                continue;
            };
            let have = |reader: &Reader| reader.has(&fingerprint) && reader.since <= read_before;
            if !readers.is_empty() && readers.iter().all(have) {
                kernel.keys.activate(id)?;
                tracing::info!(key = %id, "every running server has had the key for ten minutes: it is active");
            }
        }
        Ok(())
    }

    async fn say(&self, kernel: &Arc<Kernel>) -> Result<()> {
        let (keys, now) = (kernel.keys.fingerprints(), kernel.clock.now());
        let last = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = last.filter(|last| last.keys == keys);
        if last
            .as_ref()
            .is_some_and(|last| last.at <= now && now < last.at.plus_secs(SAY_SECS))
        {
            return Ok(());
        }
        // A clock that was set back says when it began again.
        let since = last.map_or(now, |last| last.since.min(now));
        let said = Announcement { keys, since, at: now };
        let (server, text) = (self.server.clone(), serde_json::json!(said.keys).to_string());
        let write = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            ctx.queue(&PUT_READER, params![server.as_str(), text.as_str(), since, now])
        };
        kernel.system(OrganizationId::installation(), None, write).await?;
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        match kernel.undoubted().await? {
            Some(undoubted) => forget_silent(kernel, undoubted).await,
            None => Ok(()),
        }
    }

    /// Says that the server stops.
    ///
    /// Errors: those of the store.
    pub async fn leave(&self, kernel: &Arc<Kernel>) -> Result<()> {
        let server = self.server.clone();
        let forget = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            ctx.queue(&DROP_READER, params![server.as_str()])
        };
        kernel.system(OrganizationId::installation(), None, forget).await
    }
}

/// Forgets servers that were silent for a day; they count for nothing long before.
async fn forget_silent(kernel: &Arc<Kernel>, now: SureTime) -> Result<()> {
    let silent = now.earlier_by(86_400).instant();
    let forget =
        move |ctx: &mut provost_kernel::OperationContext<'_>| ctx.queue(&DROP_SILENT, params![silent]);
    kernel.system(OrganizationId::installation(), None, forget).await
}

/// Uses a key for what is new, once the store knows it.
async fn adopt(kernel: &Arc<Kernel>, label: String, value: [u8; 32]) -> Result<()> {
    let (name, now) = (label.clone(), kernel.clock.now());
    let remember =
        move |ctx: &mut provost_kernel::OperationContext<'_>| store::add_key(ctx, &name, &value, now);
    kernel
        .system(OrganizationId::installation(), None, remember)
        .await?;
    let known = kernel.read_system(store::known).await?;
    // Another server may have been first, with another key of the same name.
    if known
        .iter()
        .any(|(name, known)| *name == label && known.as_slice() == value)
    {
        kernel.keys.adopt(&label, &value);
        return Ok(());
    }
    Err(Error::internal(format!(
        "the key {label} in the keys folder is not the one that the store knows by this name; bring the right one into the folder"
    )))
}

/// Starts the rounds: one at once, then one each 15 seconds.
pub fn start(kernel: &Arc<Kernel>, supervisor: &Supervisor) {
    let (kernel, stop) = (kernel.clone(), supervisor.token());
    supervisor.spawn("keys", async move {
        let rotation = Rotation::new(&kernel);
        loop {
            if let Err(error) = rotation.round(&kernel).await {
                tracing::warn!(reconciler = "keys", cause = ?error.private(), "{error}");
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        if let Err(error) = rotation.leave(&kernel).await {
            tracing::warn!(reconciler = "keys", cause = ?error.private(), "{error}");
        }
    });
}

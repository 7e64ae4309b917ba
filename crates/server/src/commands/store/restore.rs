//! `provost store restore`: a backup becomes a store (D12.9).
//!
//! ```text
//! backup → staged copy → whole? → epoch, audit entries, tokens revoked, everybody held back (RH-1), cells cleared,
//!                                 new admins                                                        in the copy
//! rename into the data folder | one transaction into PostgreSQL → lines in checkpoints.jsonl, durable
//! ```
//!
//! A crash before the second line leaves no store that a server could start with tokens of the past. The restored store is
//! another one than the backup's, with an id of its own, and no line names it before the last step: a crash before it leaves a
//! store that does not start beside keys that have served one; it is restored again. With `--replace-live` the lines that retire the
//! stores in whose place it comes are written with its own, at once: a restore that fails must not condemn them.
//!
//! Keeps PF-5, WS-4.

use super::replaced::Predecessors;
use super::restored_line::{Chain, line};
use super::{backup, backup_mac, check, copy, segments};
use crate::app::NewOrganization;
use crate::areas::{ALL, restore};
use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::show;
use crate::commands::store_flags::{
    StoreFlags, StoreLocation, block_on, brief, look_around, make_private, opening,
};
use provost_areas_access::oauth;
use provost_areas_identity::service_accounts;
use provost_areas_identity::service_accounts::model::ServiceAccountId;
use provost_areas_platform::events;
use provost_areas_platform::identity::{self, Identity, State};
use provost_areas_platform::store;
use provost_areas_policy::history;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn, Location, migrate};
use provost_kernel::kernel::Settings;
use provost_kernel::keys::Keys;
use provost_kernel::merkle::Hash;
use provost_kernel::time::{Clock, SystemClock};
use provost_kernel::{Error, Kernel, OperationContext, Result, Secret, idempotency, params, statements};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

statements! {
    /// Every chain.
    CHAINS = unscoped("a restore touches every chain") "SELECT organization_id FROM chain_heads ORDER BY organization_id";
    /// The hashes of a chain's entries after a place.
    HASHES = "SELECT seq, hash FROM audit_entries WHERE organization_id = ?1 AND seq > ?2 ORDER BY seq LIMIT 10000";
}

/// Make a store of a backup, in an empty data folder or an empty PostgreSQL database.
///
/// Needs the keys that `store backup` named. What was taken away after the backup must not come back to life: every token
/// is revoked, every session ended, and everybody who could act is held back (service accounts disabled, users with a role
/// suspended, clients blocked, identity links not followed). A new admin token for each organization is printed once;
/// `provost restore held` lists who is held back, and `provost restore release` lets them act again.
///
/// The restored store is a new one. Where the keys folder proves changes that the backup does not hold, the restore stops and says
/// which would be given up.
#[derive(clap::Parser)]
#[command(
    name = "restore",
    after_help = "Examples:
  provost store restore provost-monday.db --data-dir ./restored --keys-dir /etc/provost/keys
  provost store restore provost-monday.db --data-dir ./rehearsal --keys-dir /etc/provost/keys --rehearse
  provost store restore provost-monday.db --database-url-file /run/secrets/database-url --json --replace-live"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Restore {
    /// The backup
    file: PathBuf,
    /// Keep everybody and every token of the backup alive, those that were taken away after it included
    #[arg(long)]
    keep_tokens: bool,
    /// Take a backup without a MAC beside it, as versions before MACs wrote them: nothing says then that it is as it was written.
    /// The audit logs say so
    #[arg(long)]
    unsigned: bool,
    /// Give up what the keys folder proves and the backup lacks, and retire the store that has it: it is not served again
    #[arg(long)]
    replace_live: bool,
    /// Make a store to look at, which writes no line into the keys folder and says that it is a rehearsal
    #[arg(long, conflicts_with = "replace_live")]
    rehearse: bool,
    /// Print one JSON object for each organization
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl Restore {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let target = config.store.location()?;
        let folder = config.store.data_dir();
        let keys_dir = config.store.keys_dir().0;
        Keys::open(&keys_dir)?;
        look_around(&target)?;
        make_private(&folder)?;
        let _lock = lock::take(&folder)?;
        if let Location::Sqlite(file) = &target
            && (file.exists() || file.with_extension("db-wal").exists())
        {
            return Err(Failure::new(format!(
                "{} is there already; restore into an empty folder",
                file.display()
            )));
        }
        let (staged, digest) = StagedCopy::of(&self.file, &folder)?;
        let location = Location::Sqlite(staged.0.clone());
        let keys = Keys::open(&keys_dir)?;
        let is_unsigned = self.is_unsigned(&keys, &digest)?;
        let named = |error| opening(error, &Location::Sqlite(self.file.clone()));
        // Open until the end: when the last connection closes, the log is copied and nobody is told when that fails.
        let mut conn = Conn::open(&location, Access::Write).map_err(named)?;
        migrate(&mut conn, ALL.migrations(), SystemClock::new().now()).map_err(named)?;
        let now = SystemClock::new().now();
        if let Some(finding) = check::findings(&ALL, &location, &keys, now).into_iter().next() {
            return Err(Failure::new(format!("the backup cannot be restored: {finding}")));
        }
        let replaced = Predecessors::by(&mut conn, &keys)?;
        if !self.rehearse {
            replaced.agree(self.replace_live)?;
        }
        let place = StoreLocation {
            location: location.clone(),
            data_dir: None,
            keys,
            clock: Arc::new(SystemClock::new()),
        };
        // A unit of a restore touches every token of an organization.
        let kernel = place.start(Settings {
            unit_deadline: Duration::from_hours(1),
            staged: true,
            ..brief()
        })?;
        let (made, identity) = block_on(async {
            let done = self.renew(&kernel, &replaced, is_unsigned).await;
            kernel.stop().await;
            done
        })??;
        let chains = chains(&mut conn)?;
        segments::restore(&config, &self.file, &location)?;
        staged.become_store(&target, conn)?;
        if !self.rehearse {
            let lines = chains
                .iter()
                .map(|chain| line(chain, &identity, replaced.from(), now, &kernel.keys));
            let mut lines = lines.collect::<Result<Vec<_>>>()?;
            if self.replace_live {
                lines.extend(replaced.retire(now));
            }
            kernel.keys.append_checkpoint_lines(&lines).map_err(|error| {
                Failure::from(error).during(
                    "the store is in its place, but checkpoints.jsonl in the keys folder cannot be written; empty the \
                     target and restore again",
                )
            })?;
        }
        self.tell(&made, identity.epoch)
    }

    /// Says whether the backup has no MAC, and may be without one.
    ///
    /// Errors: a sentence for one that has none and needs one, and for a MAC of another content.
    fn is_unsigned(&self, keys: &Keys, digest: &[u8]) -> Result<bool, Failure> {
        if backup_mac::fits(keys, &self.file, digest)? {
            return Ok(false);
        }
        if self.unsigned {
            return Ok(true);
        }
        Err(Failure::new(format!(
            "the backup has no MAC: {} is not there. `store backup` wrote it beside the backup: bring it back. A backup of a version \
             that wrote none is restored with --unsigned; nothing says then that it is as it was written",
            backup_mac::beside(&self.file).display()
        )))
    }

    /// Does in the staged copy what makes a restore more than a copy.
    async fn renew(
        &self,
        kernel: &Arc<Kernel>,
        replaced: &Predecessors,
        is_unsigned: bool,
    ) -> Result<(Vec<NewOrganization>, Identity)> {
        let (known, organizations) = kernel
            .read_system(|tx| Ok((identity::epoch(tx)?, store::organizations(tx)?)))
            .await?;
        // Machines take no release of a lower epoch than they have: it grows over all stores of these keys.
        let epoch = replaced.register.highest_epoch().max(known) + 1;
        let state = if self.rehearse {
            State::Rehearsal
        } else {
            State::Live
        };
        let new = Identity::new(&*kernel.entropy, epoch, state);
        let (identity, before) = (new.clone(), replaced.from().map(str::to_owned));
        let raise = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            ctx.target(&restore::fences::STORE, epoch.to_string());
            ctx.change("/storeEpoch", known, epoch);
            ctx.change("/unsigned", false, is_unsigned);
            history::forget_place(ctx, before.as_deref())?;
            ctx.change("/storeId", before.clone(), new.id.clone());
            new.set(ctx)
        };
        kernel
            .system(OrganizationId::installation(), Some("store.restored"), raise)
            .await?;
        let mut made = Vec::new();
        for organization in organizations {
            let keep_tokens = self.keep_tokens;
            let issued = Arc::new(Mutex::new(None));
            let sink = issued.clone();
            let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
                let org = ctx.org();
                ctx.queue(&idempotency::ERASE_EVERY_CELL, params![org])?;
                ctx.target(&restore::fences::STORE, epoch.to_string());
                events::begin_epoch(ctx)?;
                ctx.change("/unsigned", false, is_unsigned);
                oauth::forget_allowed(ctx)?;
                if keep_tokens {
                    return Ok(());
                }
                let account = hold_back(ctx, "restored-admin")?;
                *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(account);
                Ok(())
            };
            kernel
                .system(organization.clone(), Some("store.restored"), run)
                .await?;
            let account = issued.lock().unwrap_or_else(PoisonError::into_inner).take();
            made.extend(account.map(|(id, token)| NewOrganization {
                organization_id: organization,
                service_account_id: id.as_str().to_owned(),
                token,
            }));
        }
        Ok((made, identity))
    }

    fn tell(&self, made: &[NewOrganization], epoch: i64) -> Outcome {
        if self.keep_tokens {
            show::note(
                "warning: everybody and every token of the backup works again, those that were disabled, suspended, blocked or \
                 revoked after it included; look at the accounts, users, clients and tokens, and take away again what must \
                 not work",
            );
        }
        if self.json {
            return made.iter().try_for_each(show::account_json);
        }
        let rehearsal = if self.rehearse { ", as a rehearsal" } else { "" };
        show::out(&format!("The store was restored (epoch {epoch}{rehearsal}).\n"))?;
        let words = "Every token of the backup is revoked, and everybody who could act is held back: `provost restore held` \
                     lists them, `provost restore release` lets them act again. These tokens are new, and shown this once:";
        show::accounts(words, made)
    }
}

/// Holds everybody of the organization back, in the unit that restores it, and returns a new admin account, whose name begins
/// so, with its token.
pub(super) fn hold_back(
    ctx: &mut OperationContext<'_>,
    name: &str,
) -> Result<(ServiceAccountId, Secret<String>)> {
    for end_credentials in ctx.services().areas().iter().filter_map(|area| area.restore) {
        end_credentials(ctx, "store_restored")?;
    }
    restore::hold_everybody(ctx)?;
    let name = format!("{name} {}", ctx.now());
    service_accounts::issue_admin(ctx, &name)
}

fn chains(conn: &mut Conn) -> Result<Vec<Chain>> {
    conn.read(|tx| {
        let mut chains = Vec::new();
        for organization in tx.query(&CHAINS, params![], |row| row.get::<String>(0))? {
            let mut hashes: Vec<Hash> = Vec::new();
            loop {
                let after = i64::try_from(hashes.len()).map_err(Error::internal)?;
                let page = tx.query(&HASHES, params![organization.as_str(), after], |row| {
                    let hash: Vec<u8> = row.get(1)?;
                    Hash::try_from(hash.as_slice()).map_err(|_| Error::internal("a hash has not 32 bytes"))
                })?;
                if page.is_empty() {
                    break;
                }
                hashes.extend(page);
            }
            chains.push(Chain { organization, hashes });
        }
        Ok(chains)
    })
}

/// The copy that is worked on; it goes away unless it becomes the store.
struct StagedCopy(PathBuf);

impl StagedCopy {
    /// Returns the copy and the digest of what was copied: what is judged is what is restored.
    fn of(file: &Path, folder: &Path) -> Result<(Self, Vec<u8>), Failure> {
        let mut source = std::fs::File::open(file)
            .map_err(|error| Failure::of_file("the backup cannot be read", file, &error))?;
        let staged = Self(folder.join(format!("restore-{}.db", std::process::id())));
        backup::create(&staged.0)?;
        let target = std::fs::OpenOptions::new().write(true).open(&staged.0);
        let copied = target.and_then(|target| {
            let mut target = backup_mac::DigestWriter::new(target);
            std::io::copy(&mut source, &mut target).map(|_| target.digest())
        });
        let digest =
            copied.map_err(|error| Failure::of_file("the backup cannot be copied to", &staged.0, &error))?;
        Ok((staged, digest))
    }

    /// Copies SQLite's log into the file, which alone becomes the store, and closes the copy: what the log held,
    /// revocations included, would be gone without.
    fn empty_log(&self, mut conn: Conn) -> Outcome {
        conn.checkpoint()?;
        drop(conn);
        let mut log = self.0.clone().into_os_string();
        log.push("-wal");
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            return Err(Failure::new(
                "the store cannot be put in its place: its log could not be copied into its file; restore again",
            ));
        }
        Ok(())
    }

    fn become_store(&self, target: &Location, conn: Conn) -> Outcome {
        match target {
            Location::Sqlite(file) => {
                self.empty_log(conn)?;
                let moved = backup::sync(&self.0).and_then(|_| std::fs::rename(&self.0, file));
                let moved = moved.and_then(|()| backup::sync(file).map(drop));
                moved.map_err(|error| Failure::of_file("the store cannot be put in its place", file, &error))
            }
            Location::Postgres(_) => {
                drop(conn);
                let mut from = backup::open(&Location::Sqlite(self.0.clone()))?;
                let mut to = Conn::open(target, Access::Write).map_err(|error| opening(error, target))?;
                migrate(&mut to, ALL.migrations(), SystemClock::new().now())
                    .map_err(|error| opening(error, target))?;
                copy::all(&mut from, &mut to).map(drop)
            }
        }
    }
}

impl Drop for StagedCopy {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            // After a restore into a folder the first of them has become the store.
            let _ = std::fs::remove_file(path);
        }
    }
}

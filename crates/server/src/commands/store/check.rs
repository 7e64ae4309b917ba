//! `provost store check`: is the store whole?

use super::{lift_statement_timeouts, segments};
use crate::areas::ALL;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store_flags::StoreFlags;
use crate::{closing, proofs};
use provost_areas_platform::audit::{self, ForeignStorePolicy, Register, StoreStanding};
use provost_areas_platform::identity;
use provost_areas_policy::history;
use provost_kernel::area::{self, Areas};
use provost_kernel::audit::Head;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Conn, Engine, Location, Tx, is_migrated};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use provost_kernel::{Code, Result, Timestamp, params, statements};

statements! {
    /// What SQLite finds wrong with its file. PostgreSQL checks its pages when it reads them.
    INTEGRITY = unscoped("the file holds every organization") {
        sqlite: "SELECT integrity_check FROM pragma_integrity_check",
        postgres: "SELECT 'ok'::text",
    };
    /// Rows whose foreign key names nothing. PostgreSQL does not let them in.
    ORPHANS = unscoped("the file holds every organization") {
        sqlite: "SELECT \"table\", COUNT(*) FROM pragma_foreign_key_check GROUP BY 1 ORDER BY 1",
        postgres: "SELECT ''::text, CAST(0 AS BIGINT) WHERE FALSE",
    };
    /// The keys that the store was written with.
    KEY_CHECKS = unscoped("the keys are the installation's") "SELECT key_id, check_value FROM key_checks ORDER BY key_id";
    /// Every chain's head, in the order of [`Head::read`].
    HEADS = unscoped("every chain is checked") "SELECT seq, hash, mac, event_sequence, created_at, rights_changes, rights_rows, rights_sum, rights_key, organization_id FROM chain_heads ORDER BY organization_id";
    /// How many entries a chain has, from which number to which.
    ENTRIES = "SELECT COUNT(*), COALESCE(MIN(seq), 0), COALESCE(MAX(seq), 0) FROM audit_entries WHERE organization_id = ?1";
    /// The hash of an entry.
    ENTRY_HASH = "SELECT hash FROM audit_entries WHERE organization_id = ?1 AND seq = ?2";
    /// Organizations that have entries and no head.
    HEADLESS = unscoped("every chain is checked") "SELECT DISTINCT e.organization_id FROM audit_entries e WHERE NOT EXISTS (SELECT 1 FROM chain_heads h WHERE h.organization_id = e.organization_id) ORDER BY e.organization_id";
}

/// Check that the store is whole: the file, the references, the version, the keys, the audit log's ends, the
/// tokens, the counts of sessions, the segments of recorded history, that a closed store is what it was, and whatever else a server
/// asks at its start. `provost audit verify` reads the audit log itself.
///
/// Runs beside a server. Exit code 0: nothing was found; 1: every finding is a sentence on standard error. What is no damage and
/// should be known is a line on standard error that begins with `note:`, such as users who share an e-mail address, and policies
/// whose ids proxies may make others of.
#[derive(clap::Parser)]
#[command(
    name = "check",
    after_help = "Examples:
  provost store check
  provost store check --database-url-file /run/secrets/database-url --keys-dir /etc/provost/keys"
)]
pub struct Check {
    #[command(flatten)]
    store: StoreFlags,
}

impl Check {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let location = config.store.location()?;
        if let Location::Sqlite(file) = &location
            && !file.is_file()
        {
            return Err(Failure::new(format!("there is no store at {}", file.display())));
        }
        // What keeps the store from being reached is no finding about it.
        if let Err(error) = Conn::open_to_inspect(&location)
            && error.told().is_some()
        {
            return Err(error.into());
        }
        let keys = Keys::open(&config.store.keys_dir().0)?;
        // Before the snapshot: a server beside may sign more meanwhile.
        let register = Register::of(&keys.checkpoint_lines()?);
        let mut findings = findings(&ALL, &location, &keys, SystemClock::new().now());
        if findings.is_empty() {
            findings.extend(refusal(&location, &keys, register)?);
        }
        if findings.is_empty() {
            for note in notes(&location)? {
                show::note(&format!("note: {note}"));
            }
            let (files, holder) = segments::named_with_holder(&location, &keys)?;
            if !files.is_empty() || holder.place.is_some() {
                let runtime = segments::runtime()?;
                let place = config
                    .history
                    .open_to_inspect(&config.store.data_dir(), runtime.handle())?;
                let standing = history::standing(&place, &holder, &files);
                findings = standing.fault().into_iter().collect();
                findings.extend(segments::faults(&place, &files));
            }
        }
        for finding in &findings {
            show::note(finding);
        }
        match findings.len() {
            0 => show::out("the store is whole\n"),
            1 => Err(Failure::new("the store has 1 finding")),
            count => Err(Failure::new(format!("the store has {count} findings"))),
        }
    }
}

/// Returns the sentence with which a server would refuse the store.
fn refusal(location: &Location, keys: &Keys, register: Result<Register>) -> Result<Option<String>, Failure> {
    let mut conn = Conn::open_to_inspect(location)?;
    lift_statement_timeouts(&mut conn)?;
    let judged = match register {
        Ok(register) => conn.read(|tx| audit::verify_store(tx, keys, &register, ForeignStorePolicy::Refuse)),
        Err(error) => Err(error),
    };
    match judged {
        Ok(StoreStanding::Rehearsal) => {
            show::note(&format!("note: {}", identity::REHEARSAL));
            Ok(None)
        }
        Ok(StoreStanding::Known | StoreStanding::Adopts | StoreStanding::First) => Ok(None),
        Err(error) if error.code() == Code::AuditUnavailable => Ok(Some(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Returns what a store holds that is no damage and that somebody should know, in sentences.
fn notes(location: &Location) -> Result<Vec<String>, Failure> {
    let mut conn = Conn::open_to_inspect(location)?;
    lift_statement_timeouts(&mut conn)?;
    Ok(conn.read(|tx| {
        let mut notes = Vec::new();
        for find in ALL.iter().filter_map(|area| area.notes) {
            notes.extend(find(tx)?);
        }
        Ok(notes)
    })?)
}

/// Returns what is wrong with a store, in sentences.
pub fn findings(areas: &'static Areas, location: &Location, keys: &Keys, now: Timestamp) -> Vec<String> {
    let mut findings = Vec::new();
    if let Err(error) = look(areas, location, keys, now, &mut findings) {
        if let Some(sentence) = error.told() {
            findings.push(sentence.to_owned());
            return findings;
        }
        let cause = error
            .private()
            .map(|cause| format!(" ({cause})"))
            .unwrap_or_default();
        findings.push(format!("the store cannot be read to its end: {error}{cause}"));
    }
    findings
}

fn look(
    areas: &'static Areas,
    location: &Location,
    keys: &Keys,
    now: Timestamp,
    findings: &mut Vec<String>,
) -> Result<()> {
    let mut conn = Conn::open_to_inspect(location)?;
    if lift_statement_timeouts(&mut conn).is_err() {
        findings.push("the session's limits could not be lifted".into());
    }
    if conn.engine() == Engine::Sqlite {
        findings.extend(conn.read(file)?);
    }
    if !findings.is_empty() {
        // What a broken file says about its content proves nothing.
        return Ok(());
    }
    if !is_migrated(&mut conn, areas.migrations())? {
        findings.push("migrations are missing: start `provost serve` once".into());
        return Ok(());
    }
    let found = conn.read(|tx| {
        let mut found = Vec::new();
        let known = tx.query(&KEY_CHECKS, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.extend(keys.verify(&known).err().map(|error| error.to_string()));
        chains(tx, keys, &mut found)?;
        found.extend(closing::finding_of_closed(areas, tx, keys)?);
        found.extend(proofs::findings(areas, tx, keys)?.iter().map(ToString::to_string));
        for area in areas.iter() {
            if let area::Check::Find(find) = area.check {
                found.extend(find(tx, now)?);
            }
        }
        Ok(found)
    })?;
    findings.extend(found);
    Ok(())
}

fn file(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let mut findings = tx.query(&INTEGRITY, params![], |row| row.get::<String>(0))?;
    findings.retain(|line| line != "ok");
    let orphans = tx.query(&ORPHANS, params![], |row| {
        Ok(format!(
            "{} rows of the table {} name records that are not there",
            row.get::<i64>(1)?,
            row.str(0)?
        ))
    })?;
    findings.extend(orphans);
    Ok(findings)
}

fn chains(tx: &mut Tx<'_>, keys: &Keys, found: &mut Vec<String>) -> Result<()> {
    for organization in tx.query(&HEADLESS, params![], |row| row.get::<String>(0))? {
        found.push(format!("the audit log of {organization} has entries and no head"));
    }
    let heads = tx.query(&HEADS, params![], |row| {
        Head::read(&OrganizationId::from_store(row.get(9)?), row)
    })?;
    for head in heads {
        let organization = head.organization.as_str();
        if !head.is_authentic(keys) {
            found.push(format!(
                "the head of the audit log of {organization} does not carry this installation's MAC"
            ));
        }
        let ends = tx.query_opt(&ENTRIES, params![organization], |row| {
            Ok([row.get::<i64>(0)?, row.get(1)?, row.get(2)?])
        })?;
        let [count, first, last] = ends.unwrap_or([0; 3]);
        let expected = [head.seq, i64::from(head.seq > 0), head.seq];
        if [count, first, last] != expected {
            found.push(format!(
                "the audit log of {organization} has {count} entries from number {first} to {last}, and its head says {}",
                head.seq
            ));
        }
        let hash = tx.query_opt(&ENTRY_HASH, params![organization, head.seq], |row| {
            row.get::<Vec<u8>>(0)
        })?;
        if hash.is_some_and(|hash| hash != head.hash) {
            found.push(format!(
                "the last entry of the audit log of {organization} is not the one that its head names"
            ));
        }
    }
    Ok(())
}

//! What takes away, area by area, and how each is taken away again in a store that went back (D12.9).
//!
//! Each table that decides rights either says in its area's `ends.rs` which of its changes take away, or stands below with
//! the reason why none does; a test compares both lists with [`crate::rights::DECIDING`]. What each such change is called is
//! the key under which the same file says how `provost store accept --lost` takes it away again.
//!
//! INVARIANT EN-3: each table that decides rights says which of its changes take away, or why none does; and whatever
//! can stand in a line has its way of being taken away again.

use crate::areas::{
    directory, managed_config, mcp_sessions, oauth, policies, resource_credentials, resources,
    service_accounts, settings, skill_registry, words,
};
use crate::identity::{self, State};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Ending, Endings, Side, StoreName, is_kept};
use provost_kernel::keys::Keys;
use provost_kernel::{Code, Cx, Kernel, Result, Timestamp};
use std::sync::Arc;

/// What became of something that is to be taken away again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It is taken away; the words say how.
    Done(&'static str),
    /// It is away already.
    Already,
    /// The store that went back has nothing of this id.
    Gone,
    /// Nobody but a person can: the words say what is to be done.
    ByHand(String),
}

/// How something is taken away again.
#[derive(Clone, Copy)]
pub struct Retaking {
    /// What, as the line says it.
    pub what: &'static str,
    /// Takes it away, by what became of it and its ids, in a unit of its organization.
    pub again: fn(&mut Cx<'_>, &str, &[String]) -> Result<Again>,
}

/// What each area says of its tables.
const ENDINGS: &[&[Ending]] = &[
    service_accounts::ENDINGS,
    directory::ENDINGS,
    oauth::ENDINGS,
    mcp_sessions::ENDINGS,
    skill_registry::ENDINGS,
    resources::ENDINGS,
    resource_credentials::ENDINGS,
    policies::ENDINGS,
    managed_config::ENDINGS,
    settings::ENDINGS,
    words::ENDINGS,
];

/// How each area takes away again.
const RETAKINGS: &[&[Retaking]] = &[
    service_accounts::RETAKINGS,
    directory::RETAKINGS,
    oauth::RETAKINGS,
    mcp_sessions::RETAKINGS,
    skill_registry::RETAKINGS,
    resources::RETAKINGS,
    resource_credentials::RETAKINGS,
    policies::RETAKINGS,
    managed_config::RETAKINGS,
    settings::RETAKINGS,
    words::RETAKINGS,
];

/// Every other table that decides rights, and why no change of it takes away by itself.
pub const NOTHING: &[(&str, &str)] = &[
    (
        "directory_ended",
        "notes who was deleted, whose end is a line of its own",
    ),
    (
        "directory_held_changes",
        "a change that waits gives nothing until somebody settles it",
    ),
    (
        "ended_words",
        "notes what was deleted, whose end is a line of its own",
    ),
    (
        "managed_config_releases",
        "a release counts while a profile names it, which is a line of its own",
    ),
    (
        "managed_config_targets",
        "what a machine reported; forgetting it takes nothing from anybody",
    ),
    (
        "mcp_session_kinds",
        "what kinds of sessions may do; kinds only come",
    ),
    ("mcp_session_tombstones", "stand for sessions that had ended"),
    (
        "oauth_assertions",
        "what was spent once, and lives for minutes; documented as what a loss costs",
    ),
    (
        "oauth_codes",
        "live for a minute; accepting a loss voids every one",
    ),
    (
        "oauth_exchanges",
        "count the exchanges of a token that lives for minutes; documented as what a loss costs",
    ),
    (
        "oauth_former_identities",
        "notes which links ended, whose end is a line of its own",
    ),
    (
        "oauth_refresh_tokens",
        "work while their session does, whose end is a line of its own",
    ),
    ("oauth_relinkings", "accepting a loss forgets every allowance"),
    (
        "oauth_renamed_users",
        "notes who was renamed, which is a line of the user",
    ),
    ("organization_keys", "wrap secrets; nobody's rights end with them"),
    ("organizations", "are never taken away"),
    (
        "policy_revisions",
        "count while a policy names them, which is a line of its own",
    ),
    (
        "policy_set_versions",
        "follow from the policies, whose changes are lines of their own",
    ),
    (
        "skill_installs",
        "what somebody has installed; its token's end is a line of its own",
    ),
];

/// Returns what the kernel asks at each commit.
pub const fn endings() -> Endings {
    Endings {
        tables: ENDINGS,
        store,
    }
}

/// Returns the store that lines are about; nothing for a rehearsal, and for one that has no id yet.
fn store(tx: &mut Tx<'_>, keys: &Keys) -> Result<Option<StoreName>> {
    let known = identity::read(tx, keys)?;
    Ok(known
        .filter(|known| known.state == State::Live)
        .map(|known| (known.id, known.epoch)))
}

/// Takes something away again, in a unit of its organization.
///
/// Errors: those of the store. What the rules of an area refuse is left to a person.
pub fn take_again(cx: &mut Cx<'_>, what: &str, how: &str, ids: &[String]) -> Result<Again> {
    let mut all = RETAKINGS.iter().flat_map(|area| area.iter());
    let Some(retaking) = all.find(|retaking| retaking.what == what) else {
        let message = "this version does not know what it is; take it away by hand, or run the newer version";
        return Ok(Again::ByHand(message.to_owned()));
    };
    match (retaking.again)(cx, how, ids) {
        Err(error) if error.code() == Code::NotFound => Ok(Again::Gone),
        Err(error) if error.is_refusal() => Ok(Again::ByHand(error.message().to_owned())),
        outcome => outcome,
    }
}

/// How long a line is kept. Units: seconds.
const KEPT_SECS: i64 = 30 * 86_400;
/// A file is put in place anew when something is a day older than that, so once a day at most. Units: seconds.
const DUE_SECS: i64 = 31 * 86_400;

/// Removes the lines that are older than 30 days by a clock that nobody doubts (CK-1).
///
/// Errors: those of the store. A keys folder that cannot be written keeps them.
pub async fn trim(kernel: &Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let (due, before) = (now.earlier_by(DUE_SECS), now.earlier_by(KEPT_SECS));
    let shared = kernel.clone();
    let trim = move || {
        let lines = shared.keys.end_lines()?;
        let is_old = |line: &String| !is_kept(line, due.instant());
        if !lines.iter().any(is_old) {
            return Ok(0);
        }
        let before = before.instant();
        shared.keys.trim_ends(before, |line| is_kept(line, before))
    };
    match kernel.blocking(trim).await? {
        Ok(0) => {}
        Ok(lines) => tracing::info!(lines, "lines of ends.jsonl that are older than 30 days are gone"),
        Err::<_, std::io::Error>(error) => {
            tracing::warn!(cause = %error, "ends.jsonl in the keys folder keeps its old lines: it cannot be written");
        }
    }
    Ok(())
}

/// Returns until when a token works, by the columns that tokens of every kind have; nothing for one that does not. Units:
/// milliseconds.
///
/// Errors: `Internal` for a row without these columns.
pub fn works_until(side: &Side, now: Timestamp) -> Result<Option<i64>> {
    let until = side.number("expires_at")?.unwrap_or(i64::MAX);
    let works = !side.has("revoked_at")? && until > now.as_ms();
    Ok(works.then_some(until))
}

/// What is said of ids that are not those of their kind.
pub fn unclear() -> Again {
    Again::ByHand("its ids are not those of its kind; look at it by hand".to_owned())
}

/// Returns what somebody has to do.
pub fn by_hand(words: &str) -> Result<Again> {
    Ok(Again::ByHand(words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::DECIDING;
    use std::collections::BTreeSet;

    /// Proves EN-3.
    #[test]
    fn each_table_that_decides_says_what_of_it_takes_away_or_why_nothing_does() {
        let said: Vec<&str> = ENDINGS
            .iter()
            .flat_map(|area| area.iter().map(|ending| ending.table))
            .chain(NOTHING.iter().map(|(table, _)| *table))
            .collect();
        let unique: BTreeSet<&str> = said.iter().copied().collect();
        assert_eq!(
            said.len(),
            unique.len(),
            "a table stands in both lists, or twice in one"
        );
        let deciding: BTreeSet<&str> = DECIDING.iter().map(|deciding| deciding.table).collect();
        assert_eq!(unique, deciding);
    }

    /// Proves EN-3.
    #[test]
    fn no_word_has_two_ways_of_being_taken_away_again() {
        let words: Vec<&str> = RETAKINGS
            .iter()
            .flat_map(|area| area.iter().map(|retaking| retaking.what))
            .collect();
        let unique: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(words.len(), unique.len());
    }
}

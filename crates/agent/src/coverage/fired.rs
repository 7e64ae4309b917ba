//! Which conversations asked their hook, by the agent's own desk.
//!
//! ```text
//! a question at the desk ──► (account, client, mode, digest of the conversation) ──► the instant
//! a file of a conversation ──► asked within a day before it was written last?   no, and no at an earlier look ──► silent
//! ```
//!
//! An event also says where its client keeps the conversation. Where that is in no home that is looked at, the client has its folder elsewhere
//! (`CLAUDE_CONFIG_DIR`, `CODEX_HOME`), and conversations there that ask nothing are not seen: that is remembered as long as a conversation is,
//! as a digest of the home.
//!
//! A question of a registration that looks on proves nothing of one that refuses: a person may have a hook of their own beside the machine's.

use crate::folder::Folder;
use crate::trouble::Trouble;
use provost_hooks::{
    Client, Conversation, Mode, home_of_session, is_part_of_session, session_key, session_of_file,
};
use provost_inventory::traces::SessionFile;
use provost_words::digest::sha256_hex;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NAME: &str = "fired.json";
/// LIMIT: bytes of the file; ours: of what is remembered.
const MOST_BYTES: u64 = 4 << 20;
/// LIMIT: conversations of one account that are remembered. Ours: more than a person has in two days.
const MOST_OF_ACCOUNT: usize = 1_024;
/// LIMIT: all of them. Ours.
const MOST: usize = 8_192;
/// LIMIT: accounts of which it is remembered that they asked. Ours.
const MOST_ACCOUNTS: usize = 1_024;
/// LIMIT: homes of an account and a client that are remembered. Ours; of more it is remembered that one is nowhere.
const MOST_HOMES: usize = 16;
/// What stands for a home where a conversation is kept in none.
const NO_HOME: &str = "";
/// How long a conversation is remembered. Units: milliseconds.
const KEPT_MS: i64 = 2 * 86_400_000;
/// How long before its last writing a conversation may have asked last. Units: milliseconds.
const DAY_MS: i64 = 86_400_000;
/// How long a conversation may have asked nothing before that counts: a client makes the file before the first prompt. Units:
/// milliseconds; ours: less than the time between two rounds.
const PATIENCE_MS: i64 = 120_000;
/// How often the instant of a conversation is moved on. Units: milliseconds.
const STEP_MS: i64 = 60_000;

/// Who keeps conversations where: an account, a client by its word, and a digest of the home.
type Keeper = (u32, String, String);

/// Who asked: an account, a client and a mode by their words, and a digest of the conversation.
type Who = (u32, String, String, String);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Fired {
    /// The last instant at which each asked. Units: milliseconds since the Unix epoch.
    heard: Vec<(Who, i64)>,
    /// Since when each is known to be written without having asked. Units: as above.
    silent: Vec<(Who, i64)>,
    /// The last instant at which each account asked anything. Units: as above.
    accounts: BTreeMap<u32, i64>,
    /// The last instant at which each kept a conversation somewhere. Units: as above.
    homes: Vec<(Keeper, i64)>,
    /// The last instant at which the hook of each client said that it was started with code that is not its own. Units: as above.
    preloaded: BTreeMap<String, i64>,
}

#[derive(Debug, Default)]
struct Memory {
    heard: BTreeMap<Who, i64>,
    silent: BTreeMap<Who, i64>,
    accounts: BTreeMap<u32, i64>,
    homes: BTreeMap<Keeper, i64>,
    preloaded: BTreeMap<String, i64>,
    is_changed: bool,
}

/// What was heard, which the desk and the loop share.
#[derive(Clone, Debug, Default)]
pub struct SharedFired(Arc<Mutex<Memory>>);

/// What conversations of a client say of the hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// How many were written and asked nothing.
    pub silent: usize,
    /// How many have names that this version does not understand.
    pub strange: usize,
}

fn home_digest(home: &str) -> String {
    let digest = sha256_hex(format!("home\n{}", home.trim_end_matches('/')).as_bytes());
    digest[..32].to_owned()
}

fn who(account: u32, client: Client, mode: Mode, key: &str) -> Who {
    let digest = sha256_hex(format!("{}\n{key}", client.word()).as_bytes());
    let (client, mode) = (client.word().to_owned(), mode.word().to_owned());
    (account, client, mode, digest[..32].to_owned())
}

impl SharedFired {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what was kept in the folder of an agent; what cannot be read is as none, and proves nothing.
    ///
    /// Errors: folder.
    pub fn load(&self, folder: &Folder) -> Result<(), Trouble> {
        let bytes = folder.read_up_to(NAME, MOST_BYTES)?.unwrap_or_default();
        let kept: Fired = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut memory = self.lock();
        // What was heard since is later.
        for (who, at) in kept.heard {
            memory.heard.entry(who).or_insert(at);
        }
        for (who, at) in kept.silent {
            memory.silent.entry(who).or_insert(at);
        }
        for (account, at) in kept.accounts {
            memory.accounts.entry(account).or_insert(at);
        }
        for (keeper, at) in kept.homes {
            memory.homes.entry(keeper).or_insert(at);
        }
        for (client, at) in kept.preloaded {
            // A word of a client that there is not is of none.
            if Client::named(&client).is_some() {
                memory.preloaded.entry(client).or_insert(at);
            }
        }
        Ok(())
    }

    /// Keeps it, where anything changed.
    ///
    /// Errors: disk.
    pub fn save(&self, folder: &Folder, now: Timestamp) -> Result<(), Trouble> {
        let kept = {
            let mut memory = self.lock();
            let before = (memory.heard.len(), memory.accounts.len(), memory.homes.len());
            memory.heard.retain(|_, at| now.as_ms() - *at < KEPT_MS);
            memory.accounts.retain(|_, at| now.as_ms() - *at < KEPT_MS);
            memory.homes.retain(|_, at| now.as_ms() - *at < KEPT_MS);
            memory.is_changed |= (memory.heard.len(), memory.accounts.len(), memory.homes.len()) != before;
            if !std::mem::take(&mut memory.is_changed) {
                return Ok(());
            }
            Fired {
                heard: memory.heard.iter().map(|(who, at)| (who.clone(), *at)).collect(),
                silent: memory.silent.iter().map(|(who, at)| (who.clone(), *at)).collect(),
                accounts: memory.accounts.clone(),
                homes: memory
                    .homes
                    .iter()
                    .map(|(keeper, at)| (keeper.clone(), *at))
                    .collect(),
                preloaded: memory.preloaded.clone(),
            }
        };
        let written = folder.replace(NAME, &serde_json::to_vec(&kept).unwrap_or_default());
        if written.is_err() {
            self.lock().is_changed = true;
        }
        written
    }

    /// Notes that an account asked something.
    pub fn heard_of(&self, account: u32, now: Timestamp) {
        let now = now.as_ms();
        let mut memory = self.lock();
        if memory
            .accounts
            .get(&account)
            .is_some_and(|at| (now - *at).abs() < STEP_MS)
        {
            return;
        }
        if memory.accounts.len() >= MOST_ACCOUNTS && !memory.accounts.contains_key(&account) {
            let oldest = memory.accounts.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(account, _)| *account) {
                memory.accounts.remove(&oldest);
            }
        }
        memory.accounts.insert(account, now);
        memory.is_changed = true;
    }

    /// Returns the accounts that asked something within two days.
    pub fn accounts(&self) -> BTreeSet<u32> {
        self.lock().accounts.keys().copied().collect()
    }

    /// Notes that a conversation asked by a registration of a mode.
    pub fn note(&self, account: u32, client: Client, mode: Mode, session: &str, now: Timestamp) {
        let Some(key) = session_key(client, session) else {
            return;
        };
        let (who, now) = (who(account, client, mode, key), now.as_ms());
        let mut memory = self.lock();
        if let Some(at) = memory.heard.get_mut(&who) {
            // A clock that was set back moves it as well: what is compared with it goes by the same clock.
            if (now - *at).abs() >= STEP_MS {
                *at = now;
                memory.is_changed = true;
            }
            return;
        }
        let of_account = memory
            .heard
            .range(from(account)..from(account.saturating_add(1)))
            .count();
        if of_account >= MOST_OF_ACCOUNT || memory.heard.len() >= MOST {
            // It takes from itself before it takes from others.
            let oldest = memory
                .heard
                .range(from(account)..from(account.saturating_add(1)))
                .min_by_key(|(_, at)| **at)
                .map(|(who, _)| who.clone());
            match oldest {
                Some(oldest) => memory.heard.remove(&oldest),
                None => return,
            };
        }
        memory.heard.insert(who, now);
        memory.is_changed = true;
    }

    /// Notes that the hook of a client was started with code that is not its own.
    pub fn preloaded(&self, client: Client, now: Timestamp) {
        let now = now.as_ms();
        let mut memory = self.lock();
        let before = memory.preloaded.insert(client.word().to_owned(), now);
        memory.is_changed |= before.is_none_or(|at| (now - at).abs() >= STEP_MS);
    }

    /// Says whether the hook of a client was started so within a day.
    pub fn is_preloaded(&self, client: Client, now: Timestamp) -> bool {
        let at = self.lock().preloaded.get(client.word()).copied();
        at.is_some_and(|at| now.as_ms() - at < DAY_MS)
    }

    /// Notes where a client keeps a conversation that asked, where the event says it.
    ///
    /// Keeps FH-6.
    pub fn keeps(&self, account: u32, client: Client, of: &Conversation, now: Timestamp) {
        let Some(path) = of
            .path
            .as_deref()
            .filter(|_| session_key(client, &of.session).is_some())
        else {
            return;
        };
        let home = home_of_session(client, path).map_or_else(|| NO_HOME.to_owned(), home_digest);
        let (mut keeper, now) = ((account, client.word().to_owned(), home), now.as_ms());
        let mut memory = self.lock();
        if !memory.homes.contains_key(&keeper) {
            let of_keeper = memory
                .homes
                .keys()
                .filter(|one| (one.0, &one.1) == (keeper.0, &keeper.1));
            if of_keeper.count() >= MOST_HOMES || memory.homes.len() >= MOST {
                NO_HOME.clone_into(&mut keeper.2);
            }
        }
        let before = memory.homes.insert(keeper, now);
        memory.is_changed |= before.is_none_or(|at| (now - at).abs() >= STEP_MS);
    }

    /// Says whether a conversation of a client asked within two days that is kept in none of these homes.
    pub fn is_elsewhere(&self, client: Client, homes: &[PathBuf], now: Timestamp) -> bool {
        let led = homes.iter().filter_map(|home| home.canonicalize().ok());
        let known: BTreeSet<String> = homes
            .iter()
            .cloned()
            .chain(led)
            .map(|home| home_digest(&home.to_string_lossy()))
            .collect();
        let memory = self.lock();
        let mut of_client = memory
            .homes
            .iter()
            .filter(|((_, word, _), _)| word == client.word());
        of_client.any(|((_, _, home), at)| now.as_ms() - *at < KEPT_MS && !known.contains(home))
    }

    /// Returns when any conversation of a client asked last by a registration of a mode. Units: as a clock of this machine has it.
    pub fn last(&self, client: Client, mode: Mode) -> Option<Timestamp> {
        let memory = self.lock();
        let is_of = |who: &Who| who.1 == client.word() && counting(mode).any(|mode| who.2 == mode.word());
        let of_client = memory.heard.iter().filter(|(who, _)| is_of(who));
        of_client.map(|(_, at)| *at).max().map(Timestamp::from_ms)
    }

    /// Returns what the files of a client's conversations say, of all homes together: those of which none is known to have asked, by a
    /// registration of the mode that is being proven, within a day before it was written last, at this look and at one before it.
    pub fn silence(&self, client: Client, mode: Mode, files: &[SessionFile], now: Timestamp) -> Silence {
        let mut found = Silence::default();
        let mut memory = self.lock();
        let mut still = BTreeMap::new();
        for file in files {
            let Some(key) = session_of_file(client, &file.stem) else {
                found.strange += usize::from(!is_part_of_session(client, &file.stem));
                continue;
            };
            let since = file.modified_ms.saturating_sub(DAY_MS);
            let has_asked = counting(mode).any(|mode| {
                let who = who(file.account, client, mode, key);
                memory.heard.get(&who).is_some_and(|at| *at >= since)
            });
            if has_asked {
                continue;
            }
            let who = who(file.account, client, mode, key);
            let first = memory.silent.get(&who).copied().unwrap_or(now.as_ms());
            found.silent += usize::from(now.as_ms() - first >= PATIENCE_MS);
            still.insert(who, first);
        }
        let is_of_client = |who: &Who| who.1 == client.word();
        let before = memory.silent.keys().filter(|who| is_of_client(who));
        memory.is_changed |= !before.eq(still.keys());
        memory.silent.retain(|who, _| !is_of_client(who));
        memory.silent.extend(still);
        found
    }
}

/// Returns the modes whose questions prove that a registration of a mode fires: one that refuses looks on as well.
fn counting(mode: Mode) -> impl Iterator<Item = Mode> {
    let weaker = (mode == Mode::Monitor).then_some(Mode::Enforce);
    std::iter::once(mode).chain(weaker)
}

/// Returns where the conversations of an account begin.
fn from(account: u32) -> Who {
    (account, String::new(), String::new(), String::new())
}

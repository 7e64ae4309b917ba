//! Which server of MCP a call is for, by the configuration of its client as it is on the disk now.
//!
//! ```text
//! account ──► home ─┐
//! folder, client ───┴─► what was looked at before, and is as it was? ──► taken
//!                       else ──► looked at anew, for so long at most ──► every server that may be meant, and the one that is
//! ```
//!
//! Who holds the machine can start a client with other configurations than those on the disk: by its command line, by a variable, by
//! writing another one after the client has read its own. Where the client says whose configuration a server is of, the first is seen; and
//! where it says that it keeps its conversations in another folder than the home's, its configuration lies there too, and nobody can say.
//!
//! Where a client says beside the call what it starts (Gemini CLI), that is one more server that may be meant: a denial of it refuses, and where it is
//! another one than the files say, nobody is said. It is the client's word, without the variables and headers of an entry: nobody is said by it
//! alone, and it takes away none that the files name.
//!
//! An agent of the machine looks for others, who may not see all that it sees: of projects it reads those in the home of whoever asks, and
//! where somebody works elsewhere, nobody can say.
//!
//! Keeps LJ-11.

use provost_hooks::{CalledServer, Client, Conversation, KnownServer, Question, SaidServer, home_of_session};
use provost_inventory::{
    Called, Doubt, Fault, InventoryKey, Live, LiveServer, Machine, Odd, Platform, Reach, live, said,
};
use provost_words::time::Clock;
use serde_json::Value;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// LIMIT: how long is looked for one call, since everybody else waits meanwhile. Ours; what is longer is as what cannot be read.
const MOST_TIME: Duration = Duration::from_millis(100);
/// LIMIT: configurations, and words of clients about one server, that are held, and those of one account. Ours.
const MOST_KEPT: usize = 16;
const MOST_OF_ACCOUNT: usize = 4;

/// LIMIT: bytes of the folder that a client names. The kernel's; nobody looks at one that is longer.
const MOST_OF_FOLDER: usize = 4_096;

/// What is known of the server of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOfCall {
    /// Which one it is; none where nobody can say.
    pub known: Option<KnownServer>,
    /// The keys of all that may be meant, also where it cannot be said which one is.
    pub may_be: Vec<String>,
    /// Why not all that the client has read could be read, where that is so: the call may be for any server.
    pub unread: Option<Unread>,
    /// What may be meant where an entry is written so that nobody can read for which server it is.
    pub doubts: Vec<Doubt>,
}

impl ServerOfCall {
    /// Returns it with servers of the configuration that may be meant.
    fn among<'a>(mut self, servers: impl IntoIterator<Item = &'a LiveServer>) -> Self {
        for server in servers {
            self.may_be.push(server.key.clone());
            self.may_be.extend(server.also.iter().cloned());
            self.doubts.extend(server.doubts.iter().cloned());
        }
        self.may_be.sort_unstable();
        self.may_be.dedup();
        self
    }

    /// Returns it with what the client says beside the call, which may be meant besides and takes nothing away.
    ///
    /// Keeps LJ-12.
    fn beside(self, said: Option<&Result<Arc<Live>, Unread>>) -> Self {
        match said {
            None => self,
            Some(Ok(said)) => self.among(said.servers()),
            Some(Err(why)) => Self {
                unread: self.unread.or(Some(*why)),
                ..self
            },
        }
    }
}

/// Why not all of a client's configuration could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Nobody can say where the home of whoever asks is, or look at the folder of the call.
    Nowhere,
    /// It lies in another folder than the home's.
    Elsewhere,
    /// A file has a fault.
    File(Fault),
    /// An entry of the server's name says nothing that can be read.
    Entry(Odd),
    /// What the client says beside the call of what it starts says nothing that can be read.
    Said,
}

impl Unread {
    /// Returns it in words, for a sentence about the client's configuration.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Nowhere => {
                "the home of whoever asks cannot be looked at or is not in the machine's list of accounts, or the path of the folder is too long"
            }
            Self::Elsewhere => "what counts lies in another folder than the home's",
            Self::File(Fault::Unreadable) => "a file of it cannot be read, or is none",
            Self::File(Fault::TooLarge) => "a file of it is larger than the agent reads",
            Self::File(Fault::Malformed) => "a file of it is not what the client reads",
            Self::File(Fault::NotPermitted) => {
                "a file of it may not be read, or lies behind a link out of the home"
            }
            Self::File(Fault::Truncated) => "there is more of it than could be read in time",
            Self::Entry(Odd::Host) => {
                "the entry of that name has an address whose host is not plainly written: write it in the letters, numbers, dots and hyphens of ASCII"
            }
            Self::Entry(Odd::Address) => {
                "the entry of that name has a variable where its address leads: write the address out"
            }
            Self::Entry(Odd::Command) => {
                "the entry of that name has a variable in a command that starts packages: write the package out"
            }
            Self::Entry(Odd::Size) => "the entry of that name holds more than the agent reads of one",
            Self::Said => {
                "what it says beside the call of what it starts for it cannot be read, or is neither a command nor an address"
            }
        }
    }
}

/// What the configurations of one account, one client and one folder say.
struct Kept {
    of: Of,
    home: PathBuf,
    live: Arc<Live>,
}

/// Of which account and client, and what was looked at.
type Of = (u32, Client, What);

/// What is looked at.
#[derive(Clone, PartialEq)]
enum What {
    /// What is configured for a call in this folder.
    Folder(Option<PathBuf>),
    /// What the client says beside a call that it starts for a server, by its digest: a client puts in what variables hold, and that stays in no memory
    /// of the agent.
    Said(String),
}

/// Where servers are looked up.
pub(crate) struct Servers {
    root: PathBuf,
    key: InventoryKey,
    kept: RefCell<Vec<Kept>>,
    most_time: Duration,
}

impl Servers {
    /// Returns one for a machine whose root is there. What a key does not say wholly has a digest under a key of its device.
    pub fn new(root: &Path, key: InventoryKey) -> Self {
        Self {
            root: root.to_owned(),
            key,
            kept: RefCell::default(),
            most_time: MOST_TIME,
        }
    }

    /// Returns it with as much time as it needs: whether a test passes is not to depend on what else its machine does.
    #[cfg(test)]
    pub fn without_haste(mut self) -> Self {
        self.most_time = Duration::MAX;
        self
    }

    /// Returns what is known of the server of a call by an account, in a conversation.
    ///
    /// Keeps LJ-11.
    pub fn of(
        &self,
        (account, home): (u32, Option<&Path>),
        question: &Question,
        conversation: Option<&Conversation>,
        clock: &dyn Clock,
    ) -> ServerOfCall {
        let Some(server) = &question.server else {
            return ServerOfCall::default();
        };
        let folder = question.folder.as_deref();
        let is_there = folder.is_none_or(|folder| folder.len() <= MOST_OF_FOLDER);
        let nowhere = ServerOfCall {
            unread: Some(Unread::Nowhere),
            ..ServerOfCall::default()
        };
        let Some(home) = home.filter(|_| is_there) else {
            return nowhere;
        };
        let said = self.said((account, home), question.client, server, clock);
        let what = What::Folder(folder.map(PathBuf::from));
        let live = match self.live((account, question.client, what), None, home, clock) {
            Ok(live) => live,
            // The unit hides homes from an agent that need not see them.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return ServerOfCall::default().beside(said.as_ref());
            }
            Err(_) => return nowhere,
        };
        let called = Called {
            tool: server.tool.clone(),
            server: server.name.clone(),
            source: server.source.clone(),
        };
        let is_elsewhere = conversation.is_some_and(|of| is_elsewhere(question.client, of, home));
        // Gemini CLI says no path where it keeps no conversation: wherever its configuration lies then.
        let is_untold = question.client == Client::Gemini && conversation.is_none_or(|of| of.path.is_none());
        let resolved = live.resolve(&called).filter(|_| !is_elsewhere && !is_untold);
        let resolved = resolved.and_then(|server| match &said {
            None => Some(server),
            Some(Ok(said)) => said.servers().iter().try_fold(server, LiveServer::with_said),
            Some(Err(_)) => None,
        });
        let known = resolved.map(|server| KnownServer {
            remote_url: server.address().map(str::to_owned),
            package_version: server.version,
            package_id: server.key,
        });
        let unread = match live.unread() {
            _ if is_elsewhere => Some(Unread::Elsewhere),
            fault => fault.map(Unread::File),
        };
        let found = ServerOfCall {
            known,
            unread,
            ..ServerOfCall::default()
        };
        found.among(live.candidates(&called)).beside(said.as_ref())
    }

    /// Returns what a client says beside a call of what it starts, as an entry of its configuration is read; nothing where it says nothing.
    ///
    /// Errors: it cannot be read.
    fn said(
        &self,
        (account, home): (u32, &Path),
        client: Client,
        server: &CalledServer,
        clock: &dyn Clock,
    ) -> Option<Result<Arc<Live>, Unread>> {
        let SaidServer::Entry(entry) = server.said.as_ref()? else {
            return Some(Err(Unread::Said));
        };
        let name = server.name.as_deref().unwrap_or_default();
        let digest = self.key.of("said", &format!("{name}\0{entry}"));
        let of = (account, client, What::Said(digest));
        let Ok(said) = self.live(of, Some((name, entry)), home, clock) else {
            return Some(Err(Unread::Said));
        };
        Some(match said.unread() {
            None => Ok(said),
            Some(Fault::Truncated) => Err(Unread::File(Fault::Truncated)),
            Some(_) => Err(Unread::Said),
        })
    }

    /// Returns what is configured, or what these words of a client are as an entry.
    fn live(
        &self,
        of: Of,
        words: Option<(&str, &Value)>,
        home: &Path,
        clock: &dyn Clock,
    ) -> std::io::Result<Arc<Live>> {
        let mut kept = self.kept.borrow_mut();
        if let Some(at) = kept.iter().position(|kept| kept.of == of && kept.home == home) {
            // What is used last stands last.
            let found = kept.remove(at);
            if found.live.holds() {
                let live = found.live.clone();
                kept.push(found);
                return Ok(live);
            }
        }
        let began = clock.since_boot();
        let now = clock.now().as_ms();
        let stop = || clock.since_boot().saturating_sub(began) >= self.most_time;
        let machine = Machine {
            root: &self.root,
            home,
            platform: Platform::HERE,
            stop: &stop,
        };
        let reach = if of.0 == rustix::process::geteuid().as_raw() {
            Reach::All
        } else {
            Reach::Home
        };
        let client = client_of(of.1);
        let folder = match &of.2 {
            What::Folder(folder) => folder.as_deref(),
            What::Said(_) => None,
        };
        let live = match words {
            None => live(&machine, (client, folder), reach, &self.key),
            Some(words) => said(&machine, client, words, &self.key),
        }?;
        let live = Arc::new(live);
        // What was cut by the time is looked at anew: the next look may be faster.
        let is_cut = live.unread() == Some(Fault::Truncated);
        if !is_cut && live.may_be_held(now) {
            let own = kept.iter().filter(|kept| kept.of.0 == of.0).count();
            let goes = if own >= MOST_OF_ACCOUNT {
                kept.iter().position(|kept| kept.of.0 == of.0)
            } else {
                (kept.len() >= MOST_KEPT).then_some(0)
            };
            if let Some(goes) = goes {
                kept.remove(goes);
            }
            kept.push(Kept {
                of,
                home: home.to_owned(),
                live: live.clone(),
            });
        }
        Ok(live)
    }
}

/// Says whether a client keeps a conversation in another folder than the home's, and so its configuration too.
fn is_elsewhere(client: Client, of: &Conversation, home: &Path) -> bool {
    let Some(path) = of.path.as_deref() else {
        return false;
    };
    // What the caller names is compared and not looked at: it may lie where a look never ends, and everybody would wait for it. The home was
    // just read.
    let is_home = |kept: &Path| kept == home || home.canonicalize().is_ok_and(|led| kept == led);
    !home_of_session(client, path).is_some_and(|kept| is_home(Path::new(kept)))
}

/// Returns how the inventory calls a client.
fn client_of(client: Client) -> provost_inventory::Client {
    match client {
        Client::ClaudeCode => provost_inventory::Client::ClaudeCode,
        Client::Codex => provost_inventory::Client::Codex,
        Client::Gemini => provost_inventory::Client::GeminiCli,
    }
}

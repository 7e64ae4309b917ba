//! A place where a client runs by itself: its own home, its own `/etc`, and a model that answers nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::answers::Answers;
use super::{Class, Client};
use crate::failure::{Context, Outcome};
use crate::process;

/// What a client does with a file, from the mildest to the hardest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// It starts and says nothing of the file.
    Starts,
    /// It starts and says that something in the file has no effect.
    Complains,
    /// It does not start.
    Refuses,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Starts => "starts",
            Self::Complains => "complains",
            Self::Refuses => "refuses",
        }
    }
}

/// The files of `/etc` that a program needs to know who it is.
const OF_ETC: [&str; 4] = ["passwd", "group", "hosts", "nsswitch.conf"];

/// Puts the folder `$0/etc` in the place of `/etc`, for this process alone, and runs the rest in an empty environment.
const ALONE: &str =
    r#"mount --bind "$0/etc" /etc && exec env -i HOME="$0/home" PATH=/usr/bin:/bin TERM=dumb "$@""#;

/// How long a client may take, on a machine that does other things as well. Units: seconds.
const LIMIT_SECS: &str = "90";

pub struct Place<'a> {
    answers: &'a Answers,
    folder: PathBuf,
    client: Client,
    program: PathBuf,
    settings: PathBuf,
    model: SocketAddr,
    /// How often a model was asked: a client that asks has started.
    asked: Arc<AtomicUsize>,
    /// What the client says without any settings.
    silence: String,
}

impl<'a> Place<'a> {
    pub fn create(
        client: Client,
        class: Class,
        program: &Path,
        number: usize,
        answers: &'a Answers,
    ) -> Outcome<Self> {
        let folder = process::target()
            .join("tmp")
            .join(format!("probe-{}-{number}", client.word()));
        let folder = std::path::absolute(folder).context("cannot find the place of a probe")?;
        let (model, asked) = listen()?;
        let settings = folder.join(match (client, class) {
            (Client::ClaudeCode, Class::Enforced) => "etc/claude-code/managed-settings.json",
            (Client::ClaudeCode, Class::Defaults) => "home/.claude/settings.json",
            (Client::Codex, Class::Enforced) => "etc/codex/requirements.toml",
            (Client::Codex, Class::Defaults) => "etc/codex/config.toml",
        });
        let mut place = Self {
            answers,
            folder,
            client,
            program: program.to_owned(),
            settings,
            model,
            asked,
            silence: String::new(),
        };
        place.clear()?;
        place.silence = place
            .look()?
            .context("the client does not run without settings")?;
        Ok(place)
    }

    /// Says what the client does when its file holds this document.
    pub fn verdict(&self, document: &Value) -> Outcome<Verdict> {
        if self.is_silent(document)? {
            return Ok(Verdict::Starts);
        }
        Ok(if self.starts(document)? {
            Verdict::Complains
        } else {
            Verdict::Refuses
        })
    }

    /// Returns what the client says of this document where it looks at its settings alone; nothing when it cannot even do that.
    pub fn judgement(&self, document: &Value) -> Outcome<Option<String>> {
        self.answers.of("says", document, || {
            self.put(document)?;
            self.look()
        })
    }

    /// Says whether the client has nothing to say of this document.
    pub fn is_silent(&self, document: &Value) -> Outcome<bool> {
        Ok(self.judgement(document)?.is_some_and(|said| said == self.silence))
    }

    /// Says whether the client comes as far as asking a model.
    pub fn starts(&self, document: &Value) -> Outcome<bool> {
        if self.client == Client::Codex {
            // It looks at its settings in the same way whatever it is started for.
            return Ok(self.judgement(document)?.is_some());
        }
        self.answers.of("starts", document, || {
            self.put(document)?;
            let before = self.asked.load(Ordering::SeqCst);
            self.run(&["-p", "hello"])?;
            Ok(self.asked.load(Ordering::SeqCst) > before)
        })
    }

    fn put(&self, document: &Value) -> Outcome {
        self.clear()?;
        let text = match self.client {
            Client::ClaudeCode => document.to_string(),
            Client::Codex => toml(document),
        };
        write(&self.settings, &text)
    }

    fn look(&self) -> Outcome<Option<String>> {
        let (is_good, said, errors) = match self.client {
            Client::ClaudeCode => self.run(&["doctor"])?,
            // The list of features is made of the whole configuration, in a twentieth of a second.
            Client::Codex => self.run(&["features", "list"])?,
        };
        Ok(is_good.then_some(match self.client {
            // What it lists is what it found; above that it says what is set.
            Client::ClaudeCode => (said + &errors)
                .lines()
                .filter(|line| line.starts_with("- "))
                .collect::<Vec<_>>()
                .join("\n"),
            // The list itself says which features are on, which is not what was asked.
            Client::Codex => errors,
        }))
    }

    /// Makes the folders anew: what a client keeps from one run must not be seen by the next.
    fn clear(&self) -> Outcome {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context("cannot clear the place of a probe");
            }
            _ => {}
        }
        for name in OF_ETC {
            let text = std::fs::read_to_string(Path::new("/etc").join(name)).unwrap_or_default();
            write(&self.folder.join("etc").join(name), &text)?;
        }
        // No name can be looked up: nothing but the model is reached.
        write(&self.folder.join("etc/resolv.conf"), "")?;
        write(&self.folder.join("home/work/.keep"), "")
    }

    /// Runs the client; returns whether it was content, and what it wrote to standard output and to standard error.
    fn run(&self, words: &[&str]) -> Outcome<(bool, String, String)> {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--map-root-user", "sh", "-c", ALONE])
            .arg(&self.folder)
            .arg(format!("ANTHROPIC_BASE_URL=http://{}", self.model))
            .args([
                "ANTHROPIC_API_KEY=none",
                "CLAUDE_CODE_MAX_RETRIES=0",
                "DISABLE_AUTOUPDATER=1",
            ])
            .args(["timeout", LIMIT_SECS])
            .arg(&self.program)
            .args(words);
        let output = command
            .current_dir(self.folder.join("home/work"))
            .stdin(Stdio::null())
            .output()
            .context("cannot run unshare (Debian: util-linux)")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        ))
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    let folder = path.parent().context("a file has a folder")?;
    std::fs::create_dir_all(folder).context(format_args!("cannot create {}", folder.display()))?;
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
}

/// A model that refuses every question with the same words, and counts them.
fn listen() -> Outcome<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    let address = listener.local_addr().context("cannot listen")?;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || drop(answer(stream, &count)));
        }
    });
    Ok((address, asked))
}

fn answer(mut stream: TcpStream, asked: &AtomicUsize) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut read = Vec::new();
    let mut chunk = [0; 4096];
    while !read.windows(4).any(|four| four == b"\r\n\r\n") && read.len() < 1 << 16 {
        match stream.read(&mut chunk)? {
            0 => break,
            count => read.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
    }
    if read.starts_with(b"POST /v1/messages") {
        asked.fetch_add(1, Ordering::SeqCst);
    }
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"no model"}}"#;
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    // The rest of a long question is read, or the answer would be lost with the connection.
    while stream.read(&mut chunk)? > 0 {}
    Ok(())
}

/// Returns a document as TOML. A null, which TOML has no word for, is left to the reader to refuse.
fn toml(document: &Value) -> String {
    let members = document.as_object().into_iter().flatten();
    members.fold(String::new(), |text, (name, value)| {
        text + &Value::from(name.as_str()).to_string() + " = " + &inline(value) + "\n"
    })
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| format!("{} = {}", Value::from(name.as_str()), inline(member)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

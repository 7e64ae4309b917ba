//! One run of the command line, with its terminal.

use crate::http::Server;
use crate::operations::api;
use clap::{ArgMatches, Command};
use provost_client::cli::{self, Prompt, Surroundings, Terminal};
use provost_kernel::time::ManualClock;
use provost_kernel::{Secret, Timestamp};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The token of every test; it may stand nowhere but in the authorization header.
pub const TOKEN: &str = "prov_sat_testtesttest_thisIsTheSecretPart";

/// When every test happens.
pub const NOW: &str = "2026-11-26T12:00:00.000Z";

/// Where a test says what [`program`] is to do: a word a line.
const WORDS: &str = "PROVOST_TEST_WORDS";

/// Returns the client as a process of its own, for what signals do to it: this program once more, for one test alone.
pub fn program(words: &[impl AsRef<str>]) -> std::process::Command {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let mut program = std::process::Command::new(std::env::current_exe().expect("this program"));
    program
        .args([
            "--exact",
            "provost::a_process_of_its_own_does_what_a_test_says",
            "--nocapture",
        ])
        .env_clear()
        .env(WORDS, words.join("\n"));
    program
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "this is the main function of that process"
)]
fn a_process_of_its_own_does_what_a_test_says() {
    let Ok(words) = std::env::var(WORDS) else {
        return;
    };
    let words = ["provost"].into_iter().chain(words.lines());
    let matches = provost_client::command().get_matches_from(words);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let terminal = Terminal::system();
    let asked = provost_client::ask(&matches, &terminal);
    let runtime = runtime.expect("a runtime");
    let code = runtime.block_on(asked);
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    std::process::exit(code.into());
}

/// How the command is started.
pub struct Provost {
    stdin: Vec<u8>,
    is_terminal: bool,
    width: Option<u16>,
    colours: bool,
    typed: Option<VecDeque<String>>,
    token: Option<String>,
    home: Option<PathBuf>,
    surroundings: Surroundings,
    is_unread: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub code: u8,
    pub out: String,
    pub err: String,
    /// The questions that were asked.
    pub questions: Vec<String>,
}

impl Provost {
    /// Nobody looks and nobody answers.
    pub fn script() -> Self {
        Self {
            stdin: Vec::new(),
            is_terminal: false,
            width: None,
            colours: false,
            typed: None,
            token: Some(TOKEN.into()),
            home: None,
            surroundings: Surroundings::default(),
            is_unread: false,
        }
    }

    /// A person who types these lines.
    pub fn person(typed: &[&str]) -> Self {
        let typed = Some(typed.iter().map(|line| (*line).to_owned()).collect());
        Self {
            is_terminal: true,
            width: Some(100),
            typed,
            ..Self::script()
        }
    }

    pub fn width(self, width: u16) -> Self {
        Self {
            width: Some(width),
            ..self
        }
    }

    /// A terminal that shows colours.
    pub fn colours(self) -> Self {
        Self {
            colours: true,
            ..self
        }
    }

    pub fn stdin(self, text: &str) -> Self {
        Self {
            stdin: text.as_bytes().to_vec(),
            ..self
        }
    }

    pub fn token(self, token: Option<&str>) -> Self {
        Self {
            token: token.map(str::to_owned),
            ..self
        }
    }

    pub fn home(self, home: PathBuf) -> Self {
        Self {
            home: Some(home),
            ..self
        }
    }

    /// Variables beside the token and the home folder.
    pub fn surroundings(self, surroundings: Surroundings) -> Self {
        Self { surroundings, ..self }
    }

    /// Whoever reads the output has gone away.
    pub fn unread(self) -> Self {
        Self {
            is_unread: true,
            ..self
        }
    }

    /// Runs a command against a server.
    pub async fn asks(self, server: &Server, command: &[&str]) -> Outcome {
        let to = ["--url", server.url.as_str(), "--organization", "acme"];
        self.runs(&[command, &to].concat()).await
    }

    /// Runs a command made from the operations of the test.
    pub async fn runs(self, command: &[&str]) -> Outcome {
        let api = api();
        let root = Command::new("provost").subcommands(cli::commands(&api));
        self.played(root, command, async |matches, terminal| {
            let (group, matches) = matches.subcommand().expect("a group");
            cli::run(&api, group, matches, terminal).await
        })
        .await
    }

    /// Runs a command of the program against a server.
    pub async fn does(self, server: &Server, command: &[&str]) -> Outcome {
        let to = ["--url", server.url.as_str(), "--organization", "acme"];
        let whole = [command, &to].concat();
        self.played(provost_client::command(), &whole, async |matches, terminal| {
            provost_client::ask(matches, terminal).await
        })
        .await
    }

    /// Runs these words of the program, and no others.
    pub async fn says(self, words: &[&str]) -> Outcome {
        self.played(provost_client::command(), words, async |matches, terminal| {
            provost_client::ask(matches, terminal).await
        })
        .await
    }

    pub async fn played(
        self,
        root: Command,
        command: &[&str],
        run: impl AsyncFnOnce(&ArgMatches, &Terminal) -> u8,
    ) -> Outcome {
        let matches = match root.try_get_matches_from([&["provost"], command].concat()) {
            Ok(matches) => matches,
            Err(error) => {
                let code = u8::try_from(error.exit_code()).expect("a small code");
                return Outcome {
                    code,
                    out: String::new(),
                    err: error.to_string(),
                    questions: Vec::new(),
                };
            }
        };
        let (out, err, questions) = (Buffer::default(), Buffer::default(), Arc::default());
        let terminal = Terminal {
            stdin: Mutex::new(Box::new(io::Cursor::new(self.stdin))),
            stdout: Mutex::new(if self.is_unread {
                Box::new(ClosedPipe)
            } else {
                Box::new(out.clone())
            }),
            stderr: Mutex::new(Box::new(err.clone())),
            stdout_is_terminal: self.is_terminal,
            stderr_is_terminal: self.is_terminal,
            width: self.width,
            colours: self.colours,
            clock: Arc::new(ManualClock::new(Timestamp::parse(NOW).expect("an instant"))),
            prompt: self.typed.map(|typed| -> Box<dyn Prompt> {
                Box::new(Person {
                    typed: Mutex::new(typed),
                    questions: Arc::clone(&questions),
                })
            }),
            surroundings: Surroundings {
                token: self.token.map(Secret::new),
                home: self.home,
                ..self.surroundings
            },
            jq: OnceLock::new(),
        };
        let code = run(&matches, &terminal).await;
        let questions = questions.lock().expect("no panic").clone();
        let err = err.text();
        // Whoever reads an error did not write the program: no text for its authors, in none of the errors of these tests.
        for word in ["Other(", "Some(", "None)", "Error {", "Os {", "Err(", "Custom {"] {
            assert!(!err.contains(word), "{command:?}: {err}");
        }
        Outcome {
            code,
            out: out.text(),
            err,
            questions,
        }
    }
}

/// A pipe that nobody reads.
struct ClosedPipe;

impl Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Person {
    typed: Mutex<VecDeque<String>>,
    questions: Arc<Mutex<Vec<String>>>,
}

impl Prompt for Person {
    fn line(&self, question: &str) -> io::Result<String> {
        self.questions.lock().expect("no panic").push(question.to_owned());
        self.typed
            .lock()
            .expect("no panic")
            .pop_front()
            .ok_or_else(|| io::Error::other("nothing more is typed"))
    }

    fn hidden(&self, question: &str) -> io::Result<String> {
        self.line(question)
    }
}

/// Returns a new folder of this test's own.
pub fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "cli-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Returns the permissions of a file.
pub fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).expect("the file").permissions().mode() & 0o777
}

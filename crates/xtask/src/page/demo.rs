//! The demo's own pages: the report of its backtest, how its organization stands, and what its server shows. One of their pictures stands in README.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::browser::{Browser, View};
use super::{PICTURED, WIDTHS, judge, own};
use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// Pixels of the picture of the report; what it shows is above the first fold of a large screen.
const PICTURE_WIDTH: u32 = 1280;
const PICTURE_HEIGHT: u64 = 1380;
/// LIMIT: bytes of a picture that everybody who opens README loads.
const PICTURE_BYTES: u64 = 300 * 1024;

/// A demo that runs; it is killed when it is dropped.
pub struct Demo {
    process: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
}

/// Looks at the pages, and writes the picture of README if it is wanted; returns how many views there were.
pub fn look(
    browser: &mut Browser,
    binary: &Path,
    folder: &Path,
    pictures: &Path,
    picture: Option<&Path>,
) -> Outcome<usize> {
    let temporary = folder.join("demo");
    std::fs::create_dir_all(&temporary).context("cannot make a folder")?;
    let demo = Demo::start(binary, &temporary)?;
    let report = PathBuf::from(demo.value("report")?);
    let saved = report.with_file_name("backtest.json");
    let run = std::fs::read_to_string(&saved).context("the demo has no backtest")?;
    let run: Value = serde_json::from_str(&run).context("the backtest of the demo is no JSON")?;
    let posture = folder.join("posture.html");
    demo.posture(binary, &posture)?;
    let mut views = own::look(browser, &demo.value("url")?, pictures)?;
    for (name, page, title, run) in [
        ("demo-report", &report, ": policy backtest", &run),
        ("demo-posture", &posture, ": posture", &Value::Null),
    ] {
        for width in WIDTHS {
            for is_dark in [false, true] {
                let view = View { width, is_dark };
                let seen = browser.look(page, view)?;
                judge(run, view, &seen, title).context(format_args!("the page {name}, {view}"))?;
                if PICTURED.contains(&width) {
                    let file = pictures.join(format!("{name}-{width}-{}.png", view.scheme()));
                    browser.photograph(&file, width, seen.height)?;
                }
                views += 1;
            }
        }
    }
    if let Some(picture) = picture {
        photograph(browser, &report, picture)?;
    }
    demo.stop()?;
    let left = std::fs::read_dir(&temporary)
        .context("cannot look at what a demo leaves")?
        .count();
    if left > 0 {
        return Err(Failure::new(format!(
            "the demo left {left} things behind in {}",
            temporary.display()
        )));
    }
    Ok(views)
}

/// What a browser shows of the page as it is opened: what is folded stays folded.
fn photograph(browser: &mut Browser, report: &Path, picture: &Path) -> Outcome {
    let view = View {
        width: PICTURE_WIDTH,
        is_dark: false,
    };
    browser.open(&format!("file://{}", report.display()), view)?;
    browser.photograph(picture, PICTURE_WIDTH, PICTURE_HEIGHT)?;
    let bytes = std::fs::metadata(picture).context("there is no picture")?.len();
    if bytes > PICTURE_BYTES {
        return Err(Failure::new(format!(
            "the picture has {bytes} bytes, more than {PICTURE_BYTES}"
        )));
    }
    println!("{} has {bytes} bytes.", picture.display());
    Ok(())
}

impl Demo {
    /// Starts one with its folder below this one, and waits until it is filled.
    pub fn start(binary: &Path, temporary: &Path) -> Outcome<Self> {
        let mut command = Command::new(binary);
        process::without_settings(&mut command);
        command.args(["demo", "--no-open"]).env("TMPDIR", temporary);
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.context("cannot start the demo")?;
        let stdout = process.stdout.take().context("the demo has no output")?;
        let mut demo = Self {
            process,
            stdout: BufReader::new(stdout),
            said: String::new(),
        };
        while !demo.said.contains("Ctrl-C ends") {
            let mut line = String::new();
            let read = demo
                .stdout
                .read_line(&mut line)
                .context("cannot read what the demo says")?;
            if read == 0 {
                return Err(Failure::new(format!("the demo ended early: {}", demo.said)));
            }
            demo.said.push_str(&line);
        }
        Ok(demo)
    }

    /// What stands behind a word at the beginning of a line.
    pub fn value(&self, word: &str) -> Outcome<String> {
        let begins = format!("{word} ");
        let line = self
            .said
            .lines()
            .map(str::trim_start)
            .find(|line| line.starts_with(&begins));
        let value = line.and_then(|line| line.split_whitespace().last());
        value
            .map(str::to_owned)
            .context(format_args!("the demo names no {word}"))
    }

    fn posture(&self, binary: &Path, page: &Path) -> Outcome {
        let mut command = Command::new(binary);
        process::without_settings(&mut command);
        command.args(["report", "posture", "--quiet", "--html"]).arg(page);
        command.args([
            "--url",
            &self.value("url")?,
            "--organization",
            &self.value("organization")?,
        ]);
        command.args(["--token-file", &self.value("token")?]);
        process::output(&mut command).map(drop)
    }

    /// Ends it and waits until it has gone.
    pub fn stop(mut self) -> Outcome {
        process::signal(self.process.id(), "TERM");
        let mut rest = String::new();
        self.stdout
            .read_to_string(&mut rest)
            .context("cannot read what the demo says")?;
        let status = self.process.wait().context("the demo does not end")?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("the demo ended with {status}")))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

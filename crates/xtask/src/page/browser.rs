//! Headless Chromium, asked over its debugging pipe: messages of JSON, each ended by a zero byte.

use std::fmt::{Display, Formatter};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

/// Far more than any answer takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_mins(2);
/// A picture is no taller: the browser's own limit lies at 16 384.
const MAX_HEIGHT: u64 = 12_000;
const LOOK: &str = include_str!("../../page/look.js");

/// How a page is looked at.
#[derive(Clone, Copy)]
pub struct View {
    /// Pixels.
    pub width: u32,
    pub is_dark: bool,
}

/// What a browser made of a page.
#[derive(Debug, serde::Deserialize)]
pub struct BrowserView {
    /// Pixels that the page takes.
    pub width: u64,
    pub height: u64,
    pub title: String,
    pub words: u64,
    pub elements: Vec<String>,
    pub acts: u64,
    pub faint: Vec<String>,
    pub drawings: u64,
    pub tables: u64,
    pub captions: u64,
    /// The addresses that it asked for.
    #[serde(default)]
    pub asked: Vec<String>,
    /// What the browser said about it.
    #[serde(default)]
    pub complaints: Vec<String>,
}

impl View {
    pub fn scheme(self) -> &'static str {
        if self.is_dark { "dark" } else { "light" }
    }
}

impl Display for View {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} pixels wide, {}", self.width, self.scheme())
    }
}

/// The browser of this machine; on Debian, as root, installs the package when there is none.
pub fn find_or_install() -> Option<PathBuf> {
    let find = || {
        ["chromium", "chromium-browser"]
            .into_iter()
            .find_map(process::find_program)
    };
    if let Some(found) = find() {
        return Some(found);
    }
    let debian = Path::new("/etc/debian_version").exists() && process::find_program("apt-get").is_some();
    if !debian || !process::is_root() {
        return None;
    }
    println!("No Chromium found. Running as root on Debian, so it will be installed:");
    for words in [
        &["update"][..],
        &["install", "-y", "--no-install-recommends", "chromium"],
    ] {
        println!("  apt-get {}", words.join(" "));
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q").args(words);
        if let Err(failure) = process::run(&mut apt) {
            println!("{failure}");
            return None;
        }
    }
    find()
}

/// A running browser with one tab; killed when dropped.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// What it said unasked since the last page was opened.
    said: Vec<Value>,
}

impl Browser {
    pub fn start(program: &Path, profile: &Path) -> Outcome<Self> {
        // The browser reads from descriptor 3 and writes to 4; a shell puts our pipes there.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"]);
        command.arg(program).args([
            "--headless",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
        ]);
        if process::is_root() {
            // Root has no sandbox in Chromium; it only ever opens our own page.
            command.arg("--no-sandbox");
        }
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start Chromium")?;
        let to = process.stdin.take().context("Chromium has no input")?;
        let output = process.stdout.take().context("Chromium has no output")?;
        let (sender, from) = mpsc::channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else {
                    return;
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            process,
            to,
            from,
            session: None,
            next: 0,
            said: Vec::new(),
        };
        let tab = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": tab["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach)?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Log", "Runtime"] {
            browser.ask(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a page that lies in a file and says what became of it.
    pub fn look(&mut self, page: &Path, view: View) -> Outcome<BrowserView> {
        self.look_at(&format!("file://{}", page.display()), view)
    }

    /// Opens a page and changes nothing of it.
    pub fn open(&mut self, address: &str, view: View) -> Outcome {
        let scheme = json!([{ "name": "prefers-color-scheme", "value": view.scheme() }]);
        self.ask(
            "Emulation.setEmulatedMedia",
            &json!({ "media": "screen", "features": scheme }),
        )?;
        let size =
            json!({ "width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": view.width < 600 });
        self.ask("Emulation.setDeviceMetricsOverride", &size)?;
        self.said.clear();
        self.ask("Page.navigate", &json!({ "url": address }))?;
        self.wait_for_page()
    }

    /// Opens a page and says what became of it.
    pub fn look_at(&mut self, address: &str, view: View) -> Outcome<BrowserView> {
        self.open(address, view)?;
        let asked = self.ask(
            "Runtime.evaluate",
            &json!({ "expression": LOOK, "returnByValue": true }),
        )?;
        let found = asked["result"]["value"].clone();
        let mut seen: BrowserView =
            serde_json::from_value(found).context(format_args!("Chromium answered {asked}"))?;
        let told = |method: &str, pointer: &str| -> Vec<String> {
            let those = self.said.iter().filter(|message| message["method"] == method);
            those
                .filter_map(|message| message.pointer(pointer)?.as_str().map(str::to_owned))
                .collect()
        };
        seen.asked = told("Network.requestWillBeSent", "/params/request/url");
        seen.complaints = told("Log.entryAdded", "/params/entry/text");
        seen.complaints
            .extend(told("Runtime.exceptionThrown", "/params/exceptionDetails/text"));
        Ok(seen)
    }

    /// Clicks what a selector finds, waits for the page behind it, and returns its address.
    pub fn click(&mut self, selector: &str) -> Outcome<String> {
        self.said.clear();
        let click = format!("document.querySelector({selector:?}).click()");
        let clicked = self.ask("Runtime.evaluate", &json!({ "expression": click }))?;
        if clicked.get("exceptionDetails").is_some() {
            return Err(Failure::new(format!("there is no {selector} on the page")));
        }
        self.wait_for_page()?;
        self.address()
    }

    /// Says whether what a selector finds is seen without scrolling.
    pub fn is_in_sight(&mut self, selector: &str) -> Outcome<bool> {
        let look = format!(
            "(() => {{ const place = document.querySelector({selector:?}).getBoundingClientRect(); \
             return scrollY === 0 && place.height > 0 && place.top >= 0 && place.bottom <= innerHeight; }})()"
        );
        let asked = json!({ "expression": look, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &asked)?;
        Ok(answer["result"]["value"] == true)
    }

    /// Returns the address of the page that is open.
    pub fn address(&mut self) -> Outcome<String> {
        let where_it_is = json!({ "expression": "location.href", "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &where_it_is)?;
        let address = answer["result"]["value"].as_str().map(str::to_owned);
        address.context("Chromium does not say where it is")
    }

    fn wait_for_page(&mut self) -> Outcome {
        let is_load = |message: &Value| message["method"] == "Page.loadEventFired";
        while !self.said.iter().any(is_load) {
            let message = self.hear()?;
            self.said.push(message);
        }
        Ok(())
    }

    /// Writes a picture of the page that was looked at last.
    pub fn photograph(&mut self, file: &Path, width: u32, height: u64) -> Outcome {
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height.min(MAX_HEIGHT), "scale": 1 });
        let wanted = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.ask("Page.captureScreenshot", &wanted)?;
        let bytes = shot["data"]
            .as_str()
            .and_then(base64)
            .context("Chromium made no picture")?;
        std::fs::write(file, bytes).context(format_args!("cannot write {}", file.display()))
    }

    pub fn close(mut self) {
        // A question to the browser and not to its tab. It ends while it answers and still writes to its profile
        // afterwards, so its end is waited for; whatever is left is killed.
        self.session = None;
        drop(self.ask("Browser.close", &json!({})));
        clock::poll_until(Duration::from_secs(10), Duration::from_millis(10), || {
            !matches!(self.process.try_wait(), Ok(None))
        });
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Outcome<Value> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to
            .write_all(&bytes)
            .context("Chromium takes no more questions")?;
        loop {
            let mut message = self.hear()?;
            if message["id"] != self.next {
                self.said.push(message);
                continue;
            }
            if let Some(why) = message.pointer("/error/message") {
                return Err(Failure::new(format!("Chromium refused {method}: {why}")));
            }
            return Ok(message["result"].take());
        }
    }

    fn hear(&self) -> Outcome<Value> {
        self.from
            .recv_timeout(PATIENCE)
            .context("Chromium does not answer")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Decodes base 64 as the browser writes it, with padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            bits = bits << 6 | group.get(place).map_or(Some(0), |byte| digit(*byte))?;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_decoded_with_and_without_padding() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("/+8=", b"\xff\xef"),
        ] {
            assert_eq!(base64(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(base64("Zm9*"), None);
    }
}

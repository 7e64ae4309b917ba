//! The pages of the product in a real browser: they draw, ask nobody for anything, fit, and can be read; and somebody signs in.
//!
//! What a browser makes of a page is what no test of its text can say. The pictures stay in `target/page` for
//! people to look at.

mod browser;
mod demo;
mod hostile;
mod own;
mod sign_in;

pub use demo::Demo;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::product::{self, Workplace};
use browser::{Browser, BrowserView, View};

/// From a telephone to a desk.
const WIDTHS: [u32; 4] = [390, 640, 900, 1280];
/// Of these there are pictures.
const PICTURED: [u32; 2] = [390, 1280];

/// What the page may consist of; whatever else a browser finds came from the run.
const ELEMENTS: &str = "a bdi body br caption code dd details div dl dt figcaption figure h1 h2 h3 head header html i \
    li line main meta p path pre rect section small span strong style summary svg table tbody td text th thead title tr ul";

/// Look at the pages of reports and of a server in headless Chromium, and sign in with it
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Write the picture of a report that README shows into this file: docs/images/backtest-report.png
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let Some(chromium) = browser::find_or_install() else {
        println!(
            "Chromium is not installed and could not be (Debian and Ubuntu: apt-get install chromium): \
             the pages were NOT looked at in this run"
        );
        return Ok(());
    };
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    let pictures = process::target().join("page");
    std::fs::create_dir_all(&pictures).context("cannot make a folder for the pictures")?;
    let workplace = Workplace::create("page")?;
    let mut browser = Browser::start(&chromium, &workplace.folder.join("profile"))?;
    let mut views = 0;
    for (name, run) in runs()? {
        let page = page_of(&binary, &workplace.folder, name, &run)?;
        for width in WIDTHS {
            for is_dark in [false, true] {
                let view = View { width, is_dark };
                let seen = browser.look(&page, view)?;
                judge(&run, view, &seen, ": policy backtest")
                    .context(format_args!("the page {name}, {view}"))?;
                if PICTURED.contains(&width) {
                    let picture = pictures.join(format!("{name}-{width}-{}.png", view.scheme()));
                    browser.photograph(&picture, width, seen.height)?;
                }
                views += 1;
            }
        }
    }
    let of_demo = demo::look(
        &mut browser,
        &binary,
        &workplace.folder,
        &pictures,
        arguments.picture.as_deref(),
    )?;
    let signed_in = sign_in::look(&mut browser, &binary, &workplace.folder, &pictures)?;
    browser.close();
    workplace.remove()?;
    println!(
        "The report of the demo, the page of how it stands, and the pages of its server are right in {of_demo} views."
    );
    println!("The pages of signing in are right in {signed_in} views, and a code reached its client.");
    println!(
        "The report page is right in {views} views; pictures are in {}",
        pictures.display()
    );
    Ok(())
}

/// The runs whose pages are looked at.
fn runs() -> Outcome<Vec<(&'static str, Value)>> {
    let read = |name: &'static str| -> Outcome<(&'static str, Value)> {
        let path = process::root()
            .join("crates/xtask/page")
            .join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).context(format_args!("cannot read {}", path.display()))?;
        Ok((
            name,
            serde_json::from_str(&text).context(format_args!("{name} is no JSON"))?,
        ))
    };
    let ordinary = read("ordinary")?;
    let hostile = ("hostile", hostile::made_of(&ordinary.1));
    Ok(vec![ordinary, hostile, read("unchanged")?, read("running")?])
}

fn page_of(binary: &Path, folder: &Path, name: &str, run: &Value) -> Outcome<PathBuf> {
    let saved = folder.join(format!("{name}.json"));
    let page = folder.join(format!("{name}.html"));
    std::fs::write(&saved, run.to_string()).context("cannot write a run")?;
    let mut command = Command::new(binary);
    process::without_settings(&mut command);
    command
        .args(["backtests", "report", "--quiet", "--output", "json", "--from"])
        .arg(&saved);
    command.arg("--html").arg(&page);
    process::output(&mut command)?;
    Ok(page)
}

fn judge(run: &Value, view: View, seen: &BrowserView, title: &str) -> Outcome {
    let has_days = run.pointer("/results/byDay").is_some();
    let allowed: Vec<&str> = ELEMENTS.split_whitespace().collect();
    let foreign: Vec<&String> = seen
        .elements
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()))
        .collect();
    let rules = [
        (
            seen.asked.len() == 1,
            format!("it asks for nothing but itself, not {:?}", seen.asked),
        ),
        (
            seen.complaints.is_empty(),
            format!(
                "the browser has nothing to complain about, not {:?}",
                seen.complaints
            ),
        ),
        (
            foreign.is_empty(),
            format!("it has no elements of its own such as {foreign:?}"),
        ),
        (
            seen.acts == 0,
            format!("no element acts or points elsewhere, not {}", seen.acts),
        ),
        (
            seen.width <= u64::from(view.width),
            format!("it fits: {} pixels of {}", seen.width, view.width),
        ),
        (
            seen.faint.is_empty(),
            format!("every word has a contrast of 4.5 or more, not {:?}", seen.faint),
        ),
        (seen.words > 20, format!("there are words, not {}", seen.words)),
        (
            !has_days || seen.drawings >= 2,
            format!("charts are drawn, not {}", seen.drawings),
        ),
        (
            seen.tables == seen.captions,
            format!("every table has a caption: {} of {}", seen.captions, seen.tables),
        ),
        (
            seen.title.ends_with(title),
            format!("the title is its own, not {:?}", seen.title),
        ),
    ];
    match rules.into_iter().find(|(is_so, _)| !is_so) {
        None => Ok(()),
        Some((_, sentence)) => Err(Failure::new(format!("expected that {sentence}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen() -> BrowserView {
        serde_json::from_value(json!({
            "width": 390, "height": 900, "title": "x: policy backtest", "words": 30,
            "elements": ["html", "p"], "acts": 0, "faint": [], "drawings": 2, "tables": 1, "captions": 1,
            "asked": ["file:///x"], "complaints": [],
        }))
        .unwrap()
    }

    #[test]
    fn each_fault_of_a_page_is_seen() {
        let run = json!({ "results": { "byDay": [] } });
        let view = View {
            width: 390,
            is_dark: false,
        };
        judge(&run, view, &seen(), ": policy backtest").unwrap();
        judge(&run, view, &seen(), ": posture").unwrap_err();
        let faults: [fn(&mut BrowserView); 9] = [
            |seen| seen.asked.push("http://evil.example".into()),
            |seen| seen.complaints.push("refused to load".into()),
            |seen| seen.elements.push("script".into()),
            |seen| seen.acts = 1,
            |seen| seen.width = 391,
            |seen| seen.faint.push("grey".into()),
            |seen| seen.words = 0,
            |seen| seen.drawings = 0,
            |seen| seen.captions = 0,
        ];
        for fault in faults {
            let mut seen = seen();
            fault(&mut seen);
            judge(&run, view, &seen, ": policy backtest").unwrap_err();
        }
    }

    #[test]
    fn the_runs_that_are_brought_along_can_be_read() {
        assert_eq!(runs().unwrap().len(), 4);
    }
}

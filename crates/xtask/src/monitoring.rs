//! Has Prometheus' own `promtool` read and try what `packaging/monitoring` hands out, and the figures of the real program.
//!
//! That rules and dashboard name figures which the server exports is a test of the suite, which needs no promtool.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{self, Installation, Store, Workplace};
use crate::{clock, process};

/// Check the alert rules, try them, and read the figures of the program, with promtool
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    if process::find_program("promtool").is_none() {
        return Err(Failure::new(
            "no promtool found: it is in Debian's and Ubuntu's package prometheus, and in the archive of Prometheus' releases",
        ));
    }
    let folder = process::root().join("packaging/monitoring");
    println!(
        "{}",
        promtool(&folder, &["check", "rules", "alerts.yaml"])?.trim()
    );
    println!(
        "{}",
        promtool(&folder, &["test", "rules", "alerts-test.yaml"])?.trim()
    );
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    let workplace = Workplace::create("monitoring")?;
    let data = workplace.folder.join("data");
    let installation = Installation::new(&binary, Store::Sqlite { data }, &workplace.folder);
    let bootstrap = installation.initialize()?;
    let server = installation.serve()?;
    let request = Request::get(bootstrap.path("service-accounts"), &bootstrap.token);
    Connection::new(server.address).fetch(&request)?;
    let figures = workplace.folder.join("figures");
    let text = figures_of(&server, Duration::from_secs(10))?;
    std::fs::write(&figures, text).context(figures.display())?;
    let read = std::fs::File::open(&figures).context(figures.display())?;
    let mut check = Command::new("promtool");
    check.args(["check", "metrics"]).stdin(Stdio::from(read));
    let output = check.output().context("cannot run promtool")?;
    let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    // It exits with 3 where names or texts are against Prometheus' customs, and with 1 where nothing can be read.
    if output.status.code() == Some(1) {
        return Err(Failure::new(format!("promtool cannot read the figures: {said}")));
    }
    println!("figures of the program: read by promtool");
    for line in said.lines() {
        println!("  {line}");
    }
    server.stop()?;
    workplace.remove()
}

fn promtool(folder: &Path, words: &[&str]) -> Outcome<String> {
    process::output(Command::new("promtool").args(words).current_dir(folder))
}

/// Waits for the figures that the server reads from its store.
fn figures_of(server: &product::Server, limit: Duration) -> Outcome<String> {
    let mut text = None;
    clock::poll_until(limit, Duration::from_millis(100), || {
        let request = Request {
            token: None,
            ..Request::get("/metrics", "")
        };
        let answer = Connection::new(server.metrics).send(&request).ok();
        text = answer
            .map(|answer| String::from_utf8_lossy(&answer.body).into_owned())
            .filter(|text| text.contains("provost_tokens_ending"));
        text.is_some()
    });
    text.context("the server shows no figures of its store")
}

//! What a person reads of a demo.

use super::folder::DemoFolder;
use super::history;
use super::organization::Sample;
use provost_kernel::Secret;
use std::path::Path;

/// A demo that runs.
pub struct Running<'a> {
    pub url: &'a str,
    pub organization: &'a str,
    pub token: &'a Secret<String>,
    /// The file that holds the token.
    pub token_file: &'a Path,
    /// Whether a person looks at the output, so that the token may stand there.
    pub is_terminal: bool,
    /// How the program was called.
    pub program: &'a str,
    pub folder: &'a DemoFolder,
}

/// Returns the first words, before there is a server.
pub fn beginning(folder: &DemoFolder) -> String {
    format!("Making a sample organization in {} …\n", folder.path.display())
}

/// Returns what there is and what to do with it.
pub fn ready(running: &Running<'_>, sample: &Sample) -> Secret<String> {
    let Running {
        url,
        organization,
        token,
        token_file,
        program,
        folder,
        ..
    } = running;
    let file = quoted(&token_file.to_string_lossy());
    let (shown, exported) = if running.is_terminal {
        (token.expose().clone(), token.expose().clone())
    } else {
        (
            format!("in {}", token_file.display()),
            format!("\"$(cat {file})\""),
        )
    };
    let program = quoted(program);
    let [first, second, third, fourth, fifth] = commands(&program, sample);
    let end = if folder.is_kept() {
        format!(
            "Ctrl-C ends it and keeps {0}. To go on with it later:\n\n  {program} serve --data-dir {1}\n",
            folder.path.display(),
            quoted(&folder.file("data").to_string_lossy()),
        )
    } else {
        format!(
            "Ctrl-C ends the demo and removes {}, which holds all of it. What a kill -9 leaves there, the next demo removes.\n",
            folder.path.display()
        )
    };
    Secret::new(format!(
        "Provost runs with a sample organization: {people} people, {policies} policies, {events} recorded events of {days} days.\n\
         \n\
         \x20 url           {url}\n\
         \x20 organization  {organization}\n\
         \x20 token         {shown}\n\
         \x20 report        {report}\n\
         \x20 its backtest  {backtest}\n\
         \n\
         The report says what a stricter policy would have done to these {days} days. Try the rest in another terminal:\n\
         \n\
         \x20 export PROVOST_URL={url} PROVOST_ORGANIZATION={organization} PROVOST_TOKEN={exported}\n\
         \n\
         \x20 # which policies there are\n\x20 {first}\n\
         \x20 # may this prompt be sent?\n\x20 {second}\n\
         \x20 # what was blocked\n\x20 {third}\n\
         \x20 # what another policy would have done; change the file and ask again\n\x20 {fourth}\n\
         \x20 # how things stand, as a page\n\x20 {fifth}\n\
         \n\
         {end}",
        people = sample.people,
        policies = sample.policies,
        events = sample.events,
        days = history::DAYS,
        report = sample.report.display(),
        backtest = sample.backtest,
    ))
}

fn commands(program: &str, sample: &Sample) -> [String; 5] {
    let question = r#"{"events":[{"occasion":"prompt","attributes":{"identity.user_id":"ada@acme.example","request.prompt":"Deploy with AKIAIOSFODNN7EXAMPLE"}}]}"#;
    let candidate = quoted(&sample.candidate.to_string_lossy());
    [
        format!("{program} policies list"),
        format!("{program} policies decide --body '{question}'"),
        format!("{program} history list --action block --limit 5"),
        format!("{program} backtests run --candidate {candidate} --days 30 --wait --reason 'what if?'"),
        format!("{program} report posture --html posture.html"),
    ]
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

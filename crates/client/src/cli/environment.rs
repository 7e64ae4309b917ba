//! The variables of the process, as far as they say how a server is reached.
//!
//! A variable that is set and empty is a mistake: a secret that a pipeline did not hand out must not become another token, another
//! server or another organization without a word. One that nobody reads is named, because it was meant to do something.

use super::failure::Failure;
use super::terminal::Terminal;
use provost_words::Secret;
use std::ffi::OsString;
use std::path::PathBuf;

/// What the client reads.
const READ: [&str; 6] = [
    "PROVOST_URL",
    "PROVOST_ORGANIZATION",
    "PROVOST_PROFILE",
    "PROVOST_TOKEN",
    "PROVOST_TOKEN_FILE",
    "PROVOST_CA_CERT",
];
/// How the variables of the tests begin.
const OF_TESTS: &str = "PROVOST_TEST_";
/// From this likeness on a name is proposed.
const NEAR: f64 = 0.8;

/// What the process was started with, beside its arguments.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// `PROVOST_TOKEN`.
    pub token: Option<Secret<String>>,
    /// `PROVOST_TOKEN_FILE`.
    pub token_file: Option<PathBuf>,
    /// `PROVOST_CA_CERT`.
    pub ca_cert: Option<PathBuf>,
    /// `HTTPS_PROXY`, which may hold a password.
    pub https_proxy: Option<Secret<String>>,
    /// `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// `XDG_CONFIG_HOME`, if it is an absolute path.
    pub config_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// What opens an address: the program of `BROWSER`, or that of the desktop, where there is one.
    pub browser: Option<PathBuf>,
    /// The names of the variables that begin with `PROVOST_`.
    pub named: Vec<String>,
    /// Those of them that are set and empty.
    pub empty: Vec<String>,
    /// Returns the names that the program reads beside those of the client.
    pub read_elsewhere: Option<fn() -> Vec<String>>,
}

impl Surroundings {
    /// Reads the process's own.
    pub(super) fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |value: OsString| value.to_string_lossy().into_owned();
        let either = |upper: &str, lower: &str| set(upper).or_else(|| set(lower)).map(text);
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            name.starts_with("PROVOST_").then(|| (name, value.is_empty()))
        });
        let mut ours: Vec<(String, bool)> = ours.collect();
        ours.sort();
        let empty = ours.iter().filter(|(_, is_empty)| *is_empty);
        Self {
            // A token that is not UTF-8 is no token; the replacement character makes it refused.
            token: set("PROVOST_TOKEN").map(text).map(Secret::new),
            token_file: set("PROVOST_TOKEN_FILE").map(PathBuf::from),
            ca_cert: set("PROVOST_CA_CERT").map(PathBuf::from),
            https_proxy: either("HTTPS_PROXY", "https_proxy").map(Secret::new),
            no_proxy: either("NO_PROXY", "no_proxy"),
            config_home: set("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
            home: set("HOME").map(PathBuf::from),
            browser: set("BROWSER")
                .or_else(|| cfg!(target_os = "macos").then(|| "open".into()))
                .or_else(|| {
                    set("DISPLAY")
                        .or_else(|| set("WAYLAND_DISPLAY"))
                        .map(|_| "xdg-open".into())
                })
                .map(PathBuf::from),
            empty: empty.map(|(name, _)| name.clone()).collect(),
            named: ours.into_iter().map(|(name, _)| name).collect(),
            read_elsewhere: None,
        }
    }
}

/// Refuses variables of the client that are set and empty.
///
/// Errors: usage, with their names.
pub(super) fn refuse_empty(surroundings: &Surroundings) -> Result<(), Failure> {
    let is_read = |name: &&String| READ.contains(&name.as_str());
    let empty: Vec<&str> = surroundings
        .empty
        .iter()
        .filter(is_read)
        .map(String::as_str)
        .collect();
    let line = match empty.as_slice() {
        [] => return Ok(()),
        [one] => format!("{one} is set and empty"),
        several => format!("{} are set and empty", several.join(", ")),
    };
    Err(Failure::usage(line).and(format!("give a value, or remove it: unset {}", empty.join(" "))))
}

/// Returns a sentence for each variable that nobody reads.
pub(super) fn unknown(surroundings: &Surroundings) -> Vec<String> {
    let is_read = |name: &str| READ.contains(&name) || name.starts_with(OF_TESTS);
    let mut unknown = surroundings.named.iter().filter(|name| !is_read(name)).peekable();
    if unknown.peek().is_none() {
        return Vec::new();
    }
    let elsewhere = surroundings
        .read_elsewhere
        .map(|names| names())
        .unwrap_or_default();
    let known: Vec<&str> = READ
        .into_iter()
        .chain(elsewhere.iter().map(String::as_str))
        .collect();
    unknown
        .filter(|name| !known.contains(&name.as_str()))
        .map(|name| {
            let near = known
                .iter()
                .map(|known| (strsim::jaro_winkler(name, known), known))
                .filter(|(likeness, _)| *likeness >= NEAR)
                .max_by(|(one, _), (other, _)| one.total_cmp(other));
            match near {
                Some((_, near)) => {
                    format!("warning: nothing reads the variable {name}; did you mean {near}?")
                }
                None => format!("warning: nothing reads the variable {name}"),
            }
        })
        .collect()
}

/// Names the variables that nobody reads.
pub(super) fn note_unknown(terminal: &Terminal) {
    for line in unknown(&terminal.surroundings) {
        terminal.note(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(named: &[&str]) -> Surroundings {
        Surroundings {
            named: named.iter().map(|name| (*name).to_owned()).collect(),
            read_elsewhere: Some(|| vec!["PROVOST_STORE_DATA_DIR".into()]),
            ..Surroundings::default()
        }
    }

    #[test]
    fn a_variable_that_nobody_reads_is_named_with_the_nearest_one() {
        let known = ["PROVOST_URL", "PROVOST_STORE_DATA_DIR", "PROVOST_TEST_NIGHTLY"];
        assert_eq!(unknown(&surroundings(&known)), [""; 0]);
        let said = unknown(&surroundings(&["PROVOST_TOKENFILE", "PROVOST_STORE_DATADIR"]));
        assert_eq!(
            said,
            [
                "warning: nothing reads the variable PROVOST_TOKENFILE; did you mean PROVOST_TOKEN_FILE?",
                "warning: nothing reads the variable PROVOST_STORE_DATADIR; did you mean PROVOST_STORE_DATA_DIR?",
            ]
        );
    }

    #[test]
    fn an_empty_variable_of_the_client_is_refused_by_its_name() {
        let mut empty = surroundings(&[]);
        empty.empty = vec!["PROVOST_STORE_DATA_DIR".into()];
        assert!(refuse_empty(&empty).is_ok(), "the server reads it as not set");
        empty.empty.push("PROVOST_TOKEN".into());
        let failure = refuse_empty(&empty).unwrap_err();
        assert_eq!(failure.lines[0], "PROVOST_TOKEN is set and empty");
    }
}

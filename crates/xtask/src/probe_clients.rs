//! What real clients do with each member of their settings: asked of the programs themselves, kept as data.
//!
//! For each member that the catalogues in `crates/xtask/clients/settings` know, the npm client of a pinned version reads one
//! settings file with a right value and one with every other type of JSON in its place. What it does is one of four words:
//! it *starts*, *complains*, *refuses* to start, or *ignores* what stands there, which is said of a member that it takes with
//! every type. The result is a file of the managed configuration area, by which releases are judged from then on.
//!
//! Needs Linux with user namespaces: the managed files lie in an `/etc` that the probed process alone sees.

mod answers;
mod catalogue;
mod judge;
mod place;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::clients::command_lines;
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process, record};
use answers::Answers;
use catalogue::{Catalogue, Probe, Subject};
use judge::{refusing, silent_ones, stopping};
use place::{Place, Verdict};

/// Ask real clients what they do with each member of their settings
#[derive(clap::Args)]
pub struct Arguments {
    /// Only this client
    client: Option<Client>,
    /// Another version than the pinned one
    #[arg(long, requires = "client")]
    version: Option<String>,
    /// Use the packages in this folder instead of installing and removing them
    #[arg(long)]
    installed: Option<PathBuf>,
    /// Ask only for the types of these members, such as /permissions/deny; all others are listed as unproven
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    only: Vec<String>,
    /// How many clients run at once
    #[arg(long, default_value_t = 2)]
    at_once: usize,
    /// Go on with a run that was stopped: what the client answered then is not asked again
    #[arg(long)]
    go_on: bool,
    /// Keep how much was asked of which version, for docs/compatibility.md
    #[arg(long)]
    record: bool,
    /// Ask nothing, and keep that table of what was asked before
    #[arg(long, conflicts_with = "client")]
    record_alone: bool,
}

/// A client that can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Client {
    ClaudeCode,
    Codex,
}

impl Client {
    fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::ClaudeCode => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
        }
    }

    /// The program of this machine within the installed packages.
    fn program(self, packages: &Path) -> Outcome<PathBuf> {
        let machine = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "x64",
        };
        let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        let file = match self {
            Self::ClaudeCode => format!("@anthropic-ai/claude-code-linux-{machine}/claude"),
            Self::Codex => format!("@openai/codex-linux-{machine}/vendor/{triple}/bin/codex"),
        };
        let path = packages.join("node_modules").join(file);
        let path = std::fs::canonicalize(&path);
        path.context(format_args!("{} has no program for this machine", self.package()))
    }

    /// The classes of a release that it has a file for, with the catalogue of each.
    fn classes(self) -> &'static [(Class, &'static str)] {
        match self {
            // One form for both files, and a file of a user with one wrong value has no effect at all, so that what the
            // managed file may not say the other may say even less.
            Self::ClaudeCode => &[(Class::Enforced, "claude_code")],
            Self::Codex => &[
                (Class::Enforced, "codex_requirements"),
                (Class::Defaults, "codex_config"),
            ],
        }
    }
}

/// Which of the two files of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Enforced,
    Defaults,
}

/// What was found of one file: the verdicts of types, of words and of names.
type Found = BTreeMap<Subject, BTreeMap<String, Verdict>>;

pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.record_alone {
        return summary::record(&verdicts());
    }
    for client in [Client::ClaudeCode, Client::Codex] {
        if arguments.client.is_some_and(|wanted| wanted != client) {
            continue;
        }
        let packages = match &arguments.installed {
            Some(folder) => folder.clone(),
            None => install(client, arguments.version.as_deref())?,
        };
        let outcome = ask(client, &packages, arguments);
        if arguments.installed.is_none() {
            // The two clients together are 0.8 GB, and nothing else uses this copy.
            std::fs::remove_dir_all(&packages)
                .context(format_args!("cannot remove {}", packages.display()))?;
        }
        outcome?;
    }
    if arguments.record {
        summary::record(&verdicts())?;
    }
    Ok(())
}

/// The folder of the files of verdicts, a part of the product.
fn verdicts() -> PathBuf {
    process::root().join("crates/areas-catalog/src/managed_config/targets/probed")
}

fn install(client: Client, version: Option<&str>) -> Outcome<PathBuf> {
    let Some(version) = version else {
        return command_lines("probed");
    };
    let folder = process::target().join("tools").join("probed");
    std::fs::create_dir_all(&folder).context(format_args!("cannot create {}", folder.display()))?;
    let package = format!("{}@{version}", client.package());
    println!("installing from npm into {}: {package}", folder.display());
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel",
        "error",
    ]);
    process::output(npm.arg("--prefix").arg(&folder).arg(package))
        .context("the clients need npm (Debian: apt-get install npm)")?;
    Ok(folder)
}

fn ask(client: Client, packages: &Path, arguments: &Arguments) -> Outcome {
    let program = client.program(packages)?;
    let said = process::output(Command::new(&program).arg("--version"))?;
    let version = said
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let version = version.context("the client does not say its version")?;
    let mut file = json!({
        "client": client.word(), "version": version, "date": clock::today(), "source": "probe",
    });
    for (class, catalogue) in client.classes() {
        let catalogue = Catalogue::read(catalogue)?;
        let mut probes = catalogue.probes();
        // TOML has no word for it, so no file can have it.
        probes.retain(|probe| client != Client::Codex || probe.tried != "null");
        let unasked = unasked(&mut probes, &arguments.only);
        println!("{} {version}, {class:?}: {} probes", client.word(), probes.len());
        let name = match class {
            Class::Enforced => "enforced",
            Class::Defaults => "defaults",
        };
        let answers = format!("probe-{}-{version}-{name}.jsonl", client.word());
        let answers = Answers::open(&process::target().join("tmp").join(answers), arguments.go_on)?;
        let place = |number: usize| Place::create(client, *class, &program, number, &answers);
        let (found, mut unproven) = found(client, place, &catalogue, &probes, arguments)?;
        unproven.extend(unasked);
        file[name] = written(&found, &unproven);
    }
    let folder = verdicts();
    let path = folder.join(format!("{}_{version}.json", client.word()));
    std::fs::create_dir_all(&folder).context(format_args!("cannot create {}", folder.display()))?;
    std::fs::write(&path, text(&file)?).context(format_args!("cannot write {}", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}

/// Takes away the probes that were not asked for; returns their members. Words, forms and the top stay.
fn unasked(probes: &mut Vec<Probe>, only: &[String]) -> BTreeSet<String> {
    let mut left_out = BTreeSet::new();
    if only.is_empty() {
        return left_out;
    }
    probes.retain(|probe| match &probe.subject {
        Subject::Member(path) if !only.contains(path) => {
            left_out.insert(path.clone());
            false
        }
        Subject::Name(path) => only.iter().any(|wanted| wanted.starts_with(path.as_str())),
        _ => true,
    });
    left_out
}

/// Asks for every probe; returns what was found, and the members whose right value could not be shown to be one.
fn found<'a>(
    client: Client,
    place: impl Fn(usize) -> Outcome<Place<'a>> + Sync + Copy,
    catalogue: &Catalogue,
    probes: &[Probe],
    arguments: &Arguments,
) -> Outcome<(Found, BTreeSet<String>)> {
    let at_once = arguments.at_once;
    let mut verdicts: BTreeMap<usize, Verdict> = BTreeMap::new();
    if client == Client::ClaudeCode && arguments.only.is_empty() {
        // It needs a second for each file, and names each place that it does not take: what it names is known at once.
        let batches = catalogue.batches(probes);
        println!("  {} files with many wrong values", batches.len());
        let named = at_the_same_time(at_once, &batches, place, |place, batch| {
            let said = place.judgement(&batch.document())?.unwrap_or_default();
            let named = batch.probes().filter(|(_, words)| said.contains(words));
            let mut named: BTreeMap<usize, Verdict> =
                named.map(|(probe, _)| (probe, Verdict::Complains)).collect();
            for probe in refusing(place, batch)? {
                // What stops the client without a complaint is a policy that it obeys.
                named
                    .entry(probe)
                    .and_modify(|verdict| *verdict = Verdict::Refuses);
            }
            let rest = batch.without(&named);
            named.extend(silent_ones(place, &rest)?);
            Ok(named)
        })?;
        verdicts.extend(named.into_iter().flatten());
    }
    // A right document is the same for each of its members.
    let rest = probes
        .iter()
        .enumerate()
        .filter(|(number, _)| !verdicts.contains_key(number));
    let documents: BTreeSet<String> = rest.map(|(_, probe)| probe.document.to_string()).collect();
    let documents: Vec<String> = documents.into_iter().collect();
    println!("  {} files by themselves", documents.len());
    let asked = at_the_same_time(at_once, &documents, place, |place, document| {
        place.verdict(&serde_json::from_str(document).context("a document is JSON")?)
    })?;
    let asked: BTreeMap<String, Verdict> = documents.into_iter().zip(asked).collect();
    let stopping = stopping(client, place, catalogue)?;
    let mut found = Found::new();
    let mut unproven = BTreeSet::new();
    for (number, probe) in probes.iter().enumerate() {
        let known = verdicts
            .get(&number)
            .or_else(|| asked.get(&probe.document.to_string()));
        let mut verdict = *known.context("a probe was not asked for")?;
        if !probe.is_right && probe.made_of.is_some_and(|made_of| stopping.contains(&made_of)) {
            verdict = verdict.min(Verdict::Complains);
        }
        if probe.is_right && verdict != Verdict::Starts {
            unproven.insert(probe.subject.path().to_owned());
        }
        let verdicts = found.entry(probe.subject.clone()).or_default();
        // A type that is right in one document is right, whatever a wrong value of it meets in another.
        let known = verdicts.entry(probe.tried.clone()).or_insert(verdict);
        *known = (*known).min(verdict);
    }
    Ok((found, unproven))
}

/// Does something with each item, in several places at once; returns the results in the order of the items.
fn at_the_same_time<'a, T: Sync, R: Send>(
    at_once: usize,
    items: &[T],
    place: impl Fn(usize) -> Outcome<Place<'a>> + Sync,
    act: impl Fn(&Place<'a>, &T) -> Outcome<R> + Sync,
) -> Outcome<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work = |number: usize| -> Outcome<Vec<(usize, R)>> {
        let place = place(number)?;
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let Some(item) = items.get(at) else {
                return Ok(done);
            };
            if at % 100 == 99 {
                println!("  {} of {}", at + 1, items.len());
            }
            done.push((at, act(&place, item)?));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..at_once.max(1))
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        let mut all = Vec::new();
        for worker in workers {
            let done = worker.join().map_err(|_| Failure::new("a probe panicked"))?;
            all.extend(done?);
        }
        Ok::<_, Failure>(all)
    })?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Returns what was found of one file, by verdict.
fn written(found: &Found, unproven: &BTreeSet<String>) -> Value {
    let mut file = json!({ "members": {}, "words": {}, "forms": {}, "names": {}, "unproven": unproven });
    for (subject, verdicts) in found {
        let is_judged = verdicts.values().any(|verdict| *verdict != Verdict::Starts);
        let mut by_verdict: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tried, verdict) in verdicts {
            let word = if is_judged { verdict.word() } else { "ignores" };
            by_verdict.entry(word).or_default().push(tried);
        }
        let kind = match subject {
            Subject::Member(_) => "members",
            Subject::Word(_) => "words",
            Subject::Name(_) => "names",
            Subject::Form(_) => "forms",
        };
        file[kind][subject.path()] = json!(by_verdict);
    }
    file
}

/// The file as text, one member on each line, so that a new version shows what it changed.
fn text(file: &Value) -> Outcome<String> {
    let named = |name: &str| format!("  \"{name}\": {}", file[name]);
    let mut parts: Vec<String> = ["client", "version", "date", "source"].map(named).into();
    for class in ["enforced", "defaults"] {
        let Some(of_class) = file.get(class) else { continue };
        let mut kinds = Vec::new();
        for kind in ["members", "words", "forms", "names"] {
            let members = of_class[kind].as_object().into_iter().flatten();
            let members: BTreeMap<String, &Value> = members.map(|(name, v)| (name.clone(), v)).collect();
            kinds.push(format!("\"{kind}\": {}", record::lines(&members)?.trim_end()));
        }
        kinds.push(format!("\"unproven\": {}", of_class["unproven"]));
        parts.push(format!("  \"{class}\": {{\n{}\n  }}", kinds.join(",\n")));
    }
    Ok(format!("{{\n{}\n}}\n", parts.join(",\n")))
}

//! `provost skills verify`: each file against the receipt and the signed listing. No server is asked.

use super::list::{state, survey};
use super::receipt::{Receipt, Receipts, State};
use super::reference::{self, Reference};
use super::signed::Listing;
use crate::cli::{
    Column, Exit, Failure, Form, Printer, Terminal, TrustedKeys, jq_arg, list_output_arg, offline_trust_args,
};
use clap::{ArgMatches, Command};
use provost_words::dsse::SignedKind;
use serde_json::{Value, json};

pub fn command() -> Command {
    Command::new("verify")
        .about("Check the files of installed skills against what was signed, without a server")
        .long_about(
            "Check the files of installed skills against what was signed, without a server.\n\n\
             Each file is compared with the receipt, and the receipt with the listing that a trusted key signed. Files \
             that others put into the folder are named and are no fault. Ends with 5 when anything is not as it was \
             installed.",
        )
        .arg(reference::arg().help("The skill: [NAMESPACE/]NAME[@VERSION], or its id [default: all]"))
        .args(offline_trust_args())
        .args([list_output_arg(), jq_arg()].map(|arg| arg.help_heading("Output")))
}

pub fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let wanted = Reference::of(matches)?;
    let receipts = Receipts::read(matches, terminal)?.all()?.into_iter();
    let chosen: Vec<Receipt> = receipts
        .filter(|receipt| wanted.as_ref().is_none_or(|wanted| wanted.names(receipt)))
        .collect();
    if let (Some(wanted), true) = (&wanted, chosen.is_empty()) {
        let line = format!("{} is not installed on this machine", wanted.segment());
        return Err(Failure::new(Exit::NotFound, line));
    }
    let mut faults = Vec::new();
    let mut skills = Vec::new();
    for receipt in &chosen {
        let sight = survey(receipt)?;
        let place = (receipt.server.as_str(), receipt.organization.as_str());
        let signature = TrustedKeys::offline(place, matches, terminal)
            .and_then(|trusted| check(receipt, &trusted))
            .err();
        let state = state(receipt, &sight);
        let mut row = json!({
            "name": receipt.name,
            "version": receipt.version,
            "state": state,
            "signature": if signature.is_none() { "good" } else { "bad" },
            "path": receipt.path,
            "ref": receipt.item_ref,
        });
        for (member, paths) in [
            ("changed", &sight.changed),
            ("missing", &sight.missing),
            ("foreign", &sight.foreign),
        ] {
            if !paths.is_empty() {
                row[member] = json!(paths);
            }
        }
        let name = format!("{}@{}", receipt.item_ref, receipt.version);
        if let Some(why) = signature {
            faults.extend(why.lines.iter().map(|line| format!("{name}: {line}")));
        }
        if state != "ok" {
            faults.push(format!("{name} in {}: {state}", receipt.path.display()));
        }
        for (what, paths) in [("changed", &sight.changed), ("missing", &sight.missing)] {
            faults.extend(paths.iter().map(|path| format!("{name}: {what}: {path}")));
        }
        skills.push(row);
    }
    let columns = [
        "name",
        "version",
        "state",
        "signature",
        "path",
        "changed",
        "missing",
        "foreign",
        "ref",
    ];
    Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: false,
    }
    .list(
        &json!({ "skills": skills }),
        "skills",
        &columns.map(Column::declared),
    )?;
    if faults.is_empty() {
        return Ok(());
    }
    let line = "not everything is as it was installed and signed";
    Err(faults
        .into_iter()
        .fold(Failure::new(Exit::Conflict, line), Failure::and))
}

fn check(receipt: &Receipt, trusted: &TrustedKeys) -> Result<(), Failure> {
    if receipt.envelope == Value::Null || receipt.state == State::Installing {
        let line = "it was never installed completely; repeat `provost skills install`";
        return Err(Failure::new(Exit::Conflict, line));
    }
    let listing = Listing::read(&trusted.verified(&receipt.envelope, SignedKind::Skill)?)?;
    let wanted = Reference {
        item: receipt.item_ref.clone(),
        version: Some(receipt.version.clone()),
        name: None,
    };
    listing.must_answer(&wanted, &receipt.organization)?;
    if listing.files == receipt.files && listing.digest == receipt.digest && listing.name == receipt.name {
        return Ok(());
    }
    Err(Failure::new(Exit::Conflict, "the receipt is not what was signed"))
}

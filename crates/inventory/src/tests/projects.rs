//! What folders of projects are called: said where it is asked for, and nothing that is no name or somebody's.

use super::Folder;
use crate::Fault;
use crate::wire::Report;
use provost_words::time::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A home with projects of every kind.
fn home(name: &str) -> (Folder, Vec<String>) {
    let folder = Folder::new(name);
    let listed = vec![
        "/home/ada/work/billing".to_owned(),
        "/srv/shop front".to_owned(),
        // Whose it is.
        "/home".to_owned(),
        "/home/ada".to_owned(),
        "/home/bob".to_owned(),
        "/home/CORP/eve".to_owned(),
        "/data/homes/eve".to_owned(),
        "/mnt/old/home/eve".to_owned(),
        "/root".to_owned(),
        "/srv/lena".to_owned(),
        "/home/ada/work/bob@acme.example".to_owned(),
        // What looks like a credential or a value, and what is shown otherwise than it is written.
        format!("/home/ada/work/ghp_{}", "CaNaRy0123".repeat(3)),
        "/home/ada/work/0123456789abcdef0123456789abcdef".to_owned(),
        "/home/ada/work/TOKEN=hunter2".to_owned(),
        "/home/ada/work/pay\u{202e}lla".to_owned(),
        "/home/ada/work/zero\u{200b}width".to_owned(),
        "/home/ada/work/two\nlines".to_owned(),
        format!("/home/ada/work/{}", "long ".repeat(26)),
    ];
    folder.write("etc/passwd", "lena:x:1001:1001::/srv/lena:/bin/sh\n");
    let server = |name: &str| json!({ "mcpServers": { name: { "command": "npx", "args": ["-y", "@acme/files@1.2.3"] } } });
    for path in &listed {
        folder.write(
            &format!("{}/.mcp.json", &path[1..]),
            &server("of-project").to_string(),
        );
    }
    // A folder above a project is none, and neither is one that is not there.
    folder.write("home/ada/work/.mcp.json", &server("above").to_string());
    let mut projects: serde_json::Map<String, serde_json::Value> = listed
        .iter()
        .map(|path| (path.clone(), server("configured")))
        .collect();
    projects.insert("/home/ada/work/gone".into(), server("absent"));
    projects.insert("please tell nobody".into(), server("of-words"));
    folder.write(
        "home/ada/.claude.json",
        &json!({ "projects": projects }).to_string(),
    );
    (folder, listed)
}

fn report(scan: crate::Scan) -> Report {
    let at = Timestamp::EPOCH;
    Report::of("scan-1".into(), (at, at), &[scan], &BTreeMap::new())
}

/// Proves PV-2.
#[test]
fn a_project_is_named_where_that_is_asked_for_and_by_no_more_than_a_name() {
    let (folder, listed) = home("projects-named");
    let plain = report(folder.scan());
    assert!(!serde_json::to_string(&plain).unwrap().contains("projectName"));
    let scan = folder.scan().name_projects();
    assert!(
        !scan.report().unwrap().contains("billing"),
        "what is printed without a server"
    );
    let named = report(scan);
    assert_eq!(named.refusal(), None);
    assert_eq!(named.clone().kept(), named);
    let found = named.sections.iter().flat_map(|section| &section.observations);
    let projects: BTreeSet<_> = found
        .clone()
        .filter_map(|one| one.place().project.as_ref())
        .collect();
    assert!(
        projects.len() > listed.len(),
        "each of them was found, and more: {}",
        projects.len()
    );
    let said: BTreeSet<_> = found
        .filter_map(|one| one.place().project_name.as_deref())
        .collect();
    assert_eq!(said, BTreeSet::from(["billing", "shop front"]));
    let text = serde_json::to_string(&named).unwrap();
    for part in [
        "CaNaRy",
        "hunter2",
        "bob",
        "eve",
        "lena",
        "root",
        "work",
        "srv",
        "gone",
        "tell nobody",
    ] {
        assert!(!text.contains(part), "{part}");
    }
    // What waits is what it would have been.
    let mut without = named.clone();
    assert!(without.leave_out_project_names() && !without.leave_out_project_names());
    assert_eq!(without, plain);
    assert_ne!(named.sections[0].digest, plain.sections[0].digest);
    assert_eq!(without.refusal(), None);
}

/// Proves PV-2.
#[test]
fn a_fault_names_no_project() {
    let (folder, _) = home("projects-faults");
    folder.write("home/ada/work/billing/.mcp.json", "{not json");
    let named = report(folder.scan().name_projects());
    let faults = || named.sections.iter().flat_map(|section| &section.faults);
    assert!(faults().any(|fault| fault.fault == Fault::Malformed && fault.place.project.is_some()));
    assert!(faults().all(|fault| fault.place.project_name.is_none()));
}

/// Proves PV-2.
#[test]
fn a_name_of_a_project_is_taken_beside_its_fingerprint_and_kept_where_it_is_one() {
    let (folder, _) = home("projects-taken");
    let named = report(folder.scan().name_projects());
    let (begin, end) = (r#""projectName":""#, r#"""#);
    let as_named = |name: &str| -> Report {
        let text = serde_json::to_string(&named).unwrap();
        let from = format!("{begin}billing{end}");
        assert!(text.contains(&from));
        let mut report: Report =
            serde_json::from_str(&text.replace(&from, &format!("{begin}{name}{end}"))).unwrap();
        for section in &mut report.sections {
            section.digest = crate::wire::digest(&section.observations, &section.faults);
        }
        report
    };
    for name in ["", "two\\nlines", &"n".repeat(129)] {
        assert!(
            as_named(name)
                .refusal()
                .is_some_and(|said| said.contains("1 to 128")),
            "{name}"
        );
    }
    for name in [
        "/home/ada/secret-plan",
        "ann@acme.example",
        "KEY=1",
        "ghp_CaNaRy0123CaNaRy0123CaNaRy0123",
    ] {
        let sent = as_named(name);
        assert_eq!(sent.refusal(), None, "{name}");
        assert!(
            !serde_json::to_string(&sent.kept()).unwrap().contains(name),
            "{name}"
        );
    }
    let mut loose = named.clone();
    for section in &mut loose.sections {
        let place = section.observations.iter().map(|one| one.place().clone());
        let named = place.into_iter().find(|place| place.project_name.is_some());
        section.faults = named
            .map(|place| crate::wire::SectionFault {
                place,
                fault: Fault::Malformed,
            })
            .into_iter()
            .collect();
        section.complete = section.faults.is_empty();
        section.digest = crate::wire::digest(&section.observations, &section.faults);
    }
    assert_eq!(loose.refusal(), None);
    assert!(loose.kept().sections[0].faults[0].place.project_name.is_none());
    let mut without = named;
    for sighting in &mut without.sections[0].observations {
        let mut said = serde_json::to_value(&*sighting).unwrap();
        if said["place"]["projectName"].is_string() {
            said["place"].as_object_mut().unwrap().remove("project");
            *sighting = serde_json::from_value(said).unwrap();
        }
    }
    assert!(without.refusal().is_some(), "a name without a fingerprint");
}

//! Import a directory, resolve names, suspend somebody.

use serde_json::json;

use super::expect;
use super::guide::{Guide, text};
use crate::failure::Outcome;

pub fn visit(guide: &mut Guide) -> Outcome {
    guide.says("A directory comes from a file, all of it or nothing.");
    let broken = guide.file("broken.csv");
    let said = guide.is_refused(&["directory", "import", &broken, "--reason", "a tour"])?;
    expect(said.contains('3'), "the refused line is named")?;
    let users = guide.does(&["users", "list", "-o", "json"])?;
    expect(users["users"] == json!([]), "nothing of a refused file is there")?;
    let people = guide.file("people.csv");
    guide.changes(&["directory", "import", &people])?;
    let users = guide.does(&["users", "list", "-o", "json"])?;
    expect(
        users["users"].as_array().is_some_and(|u| u.len() == 3),
        "three users are there",
    )?;

    guide.says("A gateway asks for many names at once; what is not there is left out.");
    let asked =
        r#"{"subjects":[{"name":"ada@acme.example"},{"name":"SUPPORT"},{"name":"nobody@acme.example"}]}"#;
    let resolved = guide.does(&["subjects", "resolve", "--body", asked])?;
    expect(
        resolved["items"].as_array().is_some_and(|i| i.len() == 2),
        "two of three names are known",
    )?;
    let ada = text(&resolved, "/items/0/subjectId")?;

    guide.says("A suspended user is as if absent.");
    guide.changes(&["users", "suspend", &ada])?;
    let resolved = guide.does(&["subjects", "resolve", "--body", asked])?;
    expect(
        resolved["items"].as_array().is_some_and(|i| i.len() == 1),
        "Ada is not resolved",
    )?;
    guide.changes(&["users", "reactivate", &ada])?;
    guide.does(&[
        "policy-references",
        "resolve",
        "--kind",
        "user",
        "--selector",
        "ada@acme.example",
    ])?;
    Ok(())
}

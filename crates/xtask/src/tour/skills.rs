//! Publish a skill, install it, fetch its content with its token, uninstall it, see 401.

use std::fs;

use super::expect;
use super::guide::{Guide, text};
use crate::failure::{Context, Outcome};

pub fn visit(guide: &mut Guide) -> Outcome {
    guide.says("Skills are published once and installed where a client reads them.");
    let skill = guide.repository("skills/provost-cli");
    guide.changes(&["skills", "publish", &skill])?;
    guide.changes(&["skills", "install", "provost-cli"])?;
    let installed = guide.home.join(".claude/skills/provost-cli/SKILL.md");
    expect(installed.is_file(), "the skill is where Claude Code looks for it")?;
    guide.does(&["skills", "verify"])?;
    guide.does(&["skills", "list", "--ask-server"])?;

    guide.says("The install has a token of its own, which opens this skill and nothing else.");
    let registered = guide.changes(&["skills", "register-install", "provost-cli", "--client", "tour"])?;
    let token = text(&registered, "/gatewayToken/token")?;
    expect(
        guide.asks("skill-registry/provost-cli/content", &token)?.status == 200,
        "the token opens the skill",
    )?;
    expect(
        guide.asks("service-accounts", &token)?.status == 401,
        "the token opens nothing else",
    )?;

    guide.says("An uninstall forgets the installs, revokes their tokens and removes the files.");
    guide.changes(&["skills", "uninstall", "provost-cli"])?;
    expect(!installed.exists(), "the files are gone")?;
    expect(
        guide.asks("skill-registry/provost-cli/content", &token)?.status == 401,
        "the token is revoked",
    )?;
    let waiting = guide.does(&[
        "skills",
        "list-installs",
        "--status",
        "pending_cleanup",
        "-o",
        "json",
    ])?;
    expect(
        waiting["installs"]
            .as_array()
            .is_some_and(|installs| installs.len() == 1),
        "the client that never called back is shown",
    )?;

    guide.says("What somebody else put there is not touched.");
    let own = guide.home.join(".claude/skills/provost-cli");
    fs::create_dir_all(&own).context("cannot make a folder")?;
    fs::write(own.join("SKILL.md"), "mine").context("cannot write a file")?;
    guide.is_refused(&["skills", "install", "provost-cli", "--reason", "a tour"])?;
    expect(
        fs::read_to_string(own.join("SKILL.md")).is_ok_and(|text| text == "mine"),
        "a file that the program did not write stays",
    )
}

//! The repository's own skills, through the real server and onto a machine of their own.

use super::harness::{Home, Server, bare, get, homes, post};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A person at a machine, with a home folder and a token.
struct Person<'a> {
    home: PathBuf,
    server: &'a Server,
    token: String,
}

impl<'a> Person<'a> {
    fn new(home: &Home, server: &'a Server, token: &str) -> Self {
        let folder = home.path("person");
        fs::create_dir_all(&folder).unwrap();
        Self {
            home: folder,
            server,
            token: token.to_owned(),
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(words);
        command
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env("PROVOST_URL", format!("http://127.0.0.1:{}", self.server.port))
            .env("PROVOST_ORGANIZATION", "acme")
            .env("PROVOST_TOKEN", &self.token);
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        let output = self.command(words).output().unwrap();
        for gateway in self.gateway_tokens() {
            let shown = [&output.stdout[..], &output.stderr].concat();
            assert!(!String::from_utf8_lossy(&shown).contains(&gateway));
        }
        output
    }

    /// Runs a command that succeeds and returns the JSON of its answer.
    fn does(&self, words: &[&str]) -> Value {
        let output = self.output(words);
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that is refused and returns its exit code and words.
    fn tries(&self, words: &[&str]) -> (i32, String) {
        let output = self.output(words);
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    fn gateway_tokens(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.home.join(".config/provost/skills")) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        let tokens = paths.filter(|path| path.extension().is_some_and(|ending| ending == "token"));
        tokens
            .map(|path| fs::read_to_string(path).unwrap().trim().to_owned())
            .collect()
    }

    fn skill(&self, name: &str) -> PathBuf {
        self.home.join(".claude/skills").join(name)
    }

    fn content(&self, item: &str, token: &str) -> (u16, String) {
        let path = format!("/api/headless/v1/organizations/acme/skill-registry/{item}/manifest");
        get(self.server.port, &path, Some(token))
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../skills")
        .join(name)
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copied(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn the_skills_of_this_repository_live_their_whole_life() {
    for home in homes("skills") {
        let token = home.init();
        let server = home.serve(&[]);
        let person = Person::new(&home, &server, &token);
        for name in ["provost-cli", "back-up-provost"] {
            let from = source(name);
            let published = person.does(&["skills", "publish", from.to_str().unwrap(), "--reason", "first"]);
            assert_eq!(published["created"], true);
            assert_eq!(published["version"], "1.0.0");
            let again = person.does(&["skills", "publish", from.to_str().unwrap(), "--reason", "again"]);
            assert_eq!(again["created"], false);

            let installed = person.does(&["skills", "install", name, "--reason", "to work"]);
            assert_eq!(installed["version"], "1.0.0");
            // What an agent reads is what was written here.
            let read = fs::read_to_string(person.skill(name).join("SKILL.md")).unwrap();
            assert_eq!(read, fs::read_to_string(from.join("SKILL.md")).unwrap());
            assert_eq!(
                person.does(&["skills", "verify", name])["skills"][0]["signature"],
                "good"
            );
        }
        let script = person.skill("back-up-provost").join("scripts/rehearse.sh");
        let usage = Command::new(script).output().unwrap();
        assert_eq!(usage.status.code(), Some(2), "the script can be run");

        let tokens = person.gateway_tokens();
        assert_eq!(tokens.len(), 2);
        let opens = |token: &String| person.content("provost-cli", token).0 == 200;
        let gateway = tokens.iter().find(|token| opens(token)).unwrap();
        for name in ["provost-cli", "back-up-provost"] {
            let gone = person.does(&["skills", "uninstall", name, "--reason", "done"]);
            assert_eq!(gone["status"], "uninstalled");
            assert_eq!(gone["revokedTokens"], 1);
            assert!(!person.skill(name).exists());
        }
        let (status, body) = person.content("provost-cli", gateway);
        assert_eq!(status, 401);
        assert!(body.contains("token_revoked"), "{body}");
        assert!(person.gateway_tokens().is_empty());
        let installs = person.does(&["skills", "list"]);
        assert_eq!(installs["skills"], serde_json::json!([]));
        let path = "/api/headless/v1/organizations/acme/skill-installs";
        let (status, body) = get(server.port, path, Some(&token));
        assert_eq!(status, 200);
        assert_eq!(body.matches("\"status\":\"removed\"").count(), 2, "{body}");
        // Idempotent.
        let again = person.does(&["skills", "uninstall", "provost-cli", "--reason", "again"]);
        assert_eq!(again["status"], "not_installed");
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn a_skill_is_updated_withdrawn_and_kept_when_it_was_changed() {
    for home in homes("skill_updates") {
        let token = home.init();
        let server = home.serve(&[]);
        let person = Person::new(&home, &server, &token);
        let work = home.path("provost-cli");
        copied(&source("provost-cli"), &work);
        let publish = [
            "skills",
            "publish",
            work.to_str().unwrap(),
            "--reason",
            "r",
            "--namespace",
            "@acme",
        ];
        person.does(&publish);
        let state = |member: &str| {
            let list = person.does(&["skills", "list", "--ask-server"]);
            list["skills"][0][member].as_str().unwrap_or_default().to_owned()
        };
        person.does(&["skills", "install", "@acme/provost-cli", "--reason", "r"]);
        assert_eq!(state("registry"), "current");

        fs::remove_dir_all(work.join("references")).unwrap();
        fs::write(work.join("new.md"), "new").unwrap();
        person.does(&publish);
        assert_eq!(state("registry"), "updatable");
        assert_eq!(state("latestVersion"), "1.0.1");
        fs::write(person.skill("provost-cli").join("notes.md"), "mine").unwrap();
        let installed = person.does(&["skills", "install", "@acme/provost-cli", "--reason", "r"]);
        assert_eq!(installed["version"], "1.0.1");
        let skill = person.skill("provost-cli");
        assert!(skill.join("new.md").exists() && skill.join("notes.md").exists());
        assert!(!skill.join("references").exists());
        // The earlier one can be said.
        let earlier = person.does(&["skills", "install", "@acme/provost-cli@1.0.0", "--reason", "r"]);
        assert_eq!(earlier["version"], "1.0.0");
        assert!(skill.join("references/failures.md").exists() && !skill.join("new.md").exists());

        let path = "/api/headless/v1/organizations/acme/skill-registry/@acme%2Fprovost-cli/withdraw";
        let (status, body) = post(server.port, path, &token, "{\"confirm\":true}");
        assert_eq!(status, 200, "{body}");
        assert_eq!(state("registry"), "withdrawn");
        let (code, words) = person.tries(&["skills", "install", "@acme/provost-cli", "--reason", "r"]);
        assert_eq!(code, 5, "{words}");
        fs::write(skill.join("SKILL.md"), "changed").unwrap();
        let (code, words) = person.tries(&["skills", "verify"]);
        assert_eq!(code, 5);
        assert!(words.contains("changed: SKILL.md"), "{words}");
        let (code, words) = person.tries(&["skills", "uninstall", "@acme/provost-cli", "--reason", "r"]);
        assert_eq!(code, 5);
        assert!(words.contains("kept: "), "{words}");
        person.does(&[
            "skills",
            "uninstall",
            "@acme/provost-cli",
            "--reason",
            "r",
            "--force",
        ]);
        let left: Vec<_> = fs::read_dir(&skill)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["notes.md"]);
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn an_uninstall_finishes_when_the_server_is_back() {
    for home in homes("skill_away") {
        let token = home.init();
        let server = home.serve(&[]);
        let address = format!("127.0.0.1:{}", server.port);
        let from = source("provost-cli");
        let uninstall = [
            "skills",
            "uninstall",
            "provost-cli",
            "--reason",
            "r",
            "--retries",
            "0",
        ];
        {
            let person = Person::new(&home, &server, &token);
            person.does(&["skills", "publish", from.to_str().unwrap(), "--reason", "r"]);
            person.does(&["skills", "install", "provost-cli", "--reason", "r"]);
        }
        let mut away = Person::new(&home, &server, &token).command(&uninstall);
        assert_eq!(server.stop(), 0);
        let output = away.output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(7), "{words}");
        assert!(words.contains("the server was not told"), "{words}");

        let mut all = home.command(&["serve", "--listen", &address, "--metrics-listen", "off"]);
        all.current_dir(&home.dir);
        let server = Server::start(all, &home.path("stdout-2"));
        let person = Person::new(&home, &server, &token);
        assert!(!person.skill("provost-cli").exists());
        assert_eq!(person.does(&uninstall)["status"], "uninstalled");
        assert_eq!(person.does(&["skills", "list"])["skills"], serde_json::json!([]));
        assert_eq!(server.stop(), 0);
    }
}

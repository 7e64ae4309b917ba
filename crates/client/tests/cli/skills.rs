//! `provost skills …` against a server that plays a registry, in a home of its own.

use crate::http::{Answer, Server, json, refusal};
use crate::provost::{Outcome, Provost, folder, mode};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_skill_package::Package;
use serde_json::{Value, json as value};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const GATEWAY: &str = "prov_gwt_gatewaygate_thisIsTheGatewaySecret";
const SKILL: &str = "---\nname: reading\ndescription: Reads things.\n---\n# Reading\n";

/// A signing key that is the same in every run.
fn key(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

/// What one version of the skill is, and how the registry signs it.
#[derive(Clone)]
struct SkillVersion {
    version: &'static str,
    package: Package,
    payload: Value,
    seed: u8,
}

impl SkillVersion {
    fn of(version: &'static str, files: &[(&str, &str)]) -> Self {
        let source = folder().join("reading");
        for (path, text) in [("SKILL.md", SKILL)].iter().chain(files) {
            let path = source.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            if path.extension().is_some_and(|ending| ending == "sh") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        let package = Package::from_folder(&source).unwrap();
        let manifest = package.manifest();
        let payload = value!({
            "organizationId": "acme", "itemId": "ski_1", "name": "reading", "version": version,
            "digest": manifest.digest, "files": manifest.files, "publishedAt": "2026-01-01T00:00:00.000Z",
        });
        Self {
            version,
            package,
            payload,
            seed: 1,
        }
    }

    fn envelope(&self) -> Value {
        let payload = self.payload.to_string();
        let media_type = "application/vnd.provost.skill+json";
        let signed = format!(
            "DSSEv1 {} {media_type} {} {payload}",
            media_type.len(),
            payload.len()
        );
        let sig = STANDARD.encode(key(self.seed).sign(signed.as_bytes()));
        value!({
            "payloadType": media_type,
            "payload": STANDARD.encode(payload),
            "signatures": [{ "keyid": "k", "sig": sig }],
        })
    }

    fn installed(&self) -> Answer {
        json(
            201,
            &value!({
                "install": {
                    "installId": "ins_1", "itemId": "ski_1", "ref": "reading", "client": "claude-code",
                    "version": self.version, "updatedAt": "2026-01-01T00:00:00.000Z",
                },
                "version": { "version": self.version, "digest": self.package.manifest().digest },
                "gatewayToken": { "id": "gwt_1", "token": GATEWAY, "tokenPrefix": "prov_gwt_gate" },
                "envelope": self.envelope(),
            }),
        )
    }

    fn content(&self) -> Answer {
        Answer::Says {
            status: 200,
            headers: vec![("content-type", "application/gzip".to_owned())],
            body: self.package.to_archive(),
        }
    }

    /// The answers to an install on a machine that knows the key.
    fn again(&self) -> Vec<Answer> {
        vec![self.installed(), self.content()]
    }

    /// The answers to the first install on a machine.
    fn first(&self) -> Vec<Answer> {
        vec![self.installed(), keys(self.seed), self.content()]
    }
}

fn keys(seed: u8) -> Answer {
    let public = STANDARD.encode(key(seed).public_key().as_ref());
    json(
        200,
        &value!({ "keys": [{ "id": "k", "use": "signing", "alg": "Ed25519", "key": public }] }),
    )
}

fn forgotten(status: &str) -> Answer {
    let installs = if status == "uninstalled" {
        value!([{ "installId": "ins_1" }])
    } else {
        value!([])
    };
    let body = value!({
        "itemRef": "reading", "itemId": "ski_1", "status": status, "installs": installs,
        "gatewayToken": { "revoked": true, "revokedCount": 1, "tokens": [] }, "remainingInstalls": 0,
    });
    json(200, &body)
}

fn reported() -> Answer {
    json(
        200,
        &value!({ "install": { "installId": "ins_1", "status": "removed" } }),
    )
}

/// A person's machine.
struct Machine {
    home: PathBuf,
    /// Receipts name the server, so one address serves all commands.
    server: Option<String>,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: folder(),
            server: None,
        }
    }

    /// Runs one command against a registry that plays these answers.
    async fn does(&mut self, answers: Vec<Answer>, words: &[&str]) -> (Outcome, Server) {
        let server = Server::playing(answers).await;
        // What was installed came from the server that is asked now.
        if let Some(before) = self.server.replace(server.url.clone()) {
            for file in self
                .receipts()
                .into_iter()
                .chain([self.config().join("known-keys.json")])
            {
                if let Ok(text) = fs::read_to_string(&file) {
                    fs::write(&file, text.replace(&before, &server.url)).unwrap();
                }
            }
        }
        let outcome = Provost::script()
            .home(self.home.clone())
            .does(&server, words)
            .await;
        assert!(!outcome.out.contains(GATEWAY) && !outcome.err.contains(GATEWAY));
        (outcome, server)
    }

    async fn installs(&mut self, answers: Vec<Answer>, flags: &[&str]) -> (Outcome, Server) {
        let words = [&["skills", "install", "reading", "--reason", "r"], flags].concat();
        self.does(answers, &words).await
    }

    async fn uninstalls(&mut self, answers: Vec<Answer>, flags: &[&str]) -> (Outcome, Server) {
        let words = [
            &[
                "skills",
                "uninstall",
                "reading",
                "--reason",
                "r",
                "--retries",
                "0",
            ],
            flags,
        ]
        .concat();
        self.does(answers, &words).await
    }

    /// Runs a command that asks no server.
    async fn alone(&self, words: &[&str]) -> Outcome {
        let root = provost_client::command();
        let script = Provost::script().home(self.home.clone());
        script
            .played(root, words, async |matches, terminal| {
                provost_client::ask(matches, terminal).await
            })
            .await
    }

    fn config(&self) -> PathBuf {
        self.home.join(".config/provost")
    }

    fn skill(&self) -> PathBuf {
        self.home.join(".claude/skills/reading")
    }

    fn receipts(&self) -> Vec<PathBuf> {
        self.kept("json")
    }

    fn kept(&self, ending: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.config().join("skills")) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|found| found == ending))
            .collect()
    }

    fn receipt(&self) -> Value {
        let receipts = self.receipts();
        assert_eq!(receipts.len(), 1, "{receipts:?}");
        serde_json::from_slice(&fs::read(&receipts[0]).unwrap()).unwrap()
    }

    fn change_receipt(&self, change: impl FnOnce(&mut Value)) {
        let mut receipt = self.receipt();
        change(&mut receipt);
        fs::write(&self.receipts()[0], receipt.to_string()).unwrap();
    }

    /// Everything in the folder of skills.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.home.join(".claude/skills"), "", &mut found);
        found
    }
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.push(format!("{name}/"));
            walk(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
    found.sort();
}

fn refused(outcome: &Outcome, code: u8, words: &str) {
    assert_eq!(outcome.code, code, "{outcome:?}");
    assert!(outcome.err.contains(words), "{words:?} is not in {}", outcome.err);
}

/// Proves SL-4.
#[tokio::test]
async fn an_install_writes_the_files_the_receipt_and_the_token() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("scripts/run.sh", "#!/bin/sh\n")]);
    let (outcome, server) = machine.installs(one.first(), &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");

    assert_eq!(Package::from_folder(&machine.skill()).unwrap(), one.package);
    assert_eq!(mode(&machine.skill().join("scripts/run.sh")), 0o755);
    assert_eq!(
        machine.files(),
        [
            "reading/",
            "reading/SKILL.md",
            "reading/scripts/",
            "reading/scripts/run.sh"
        ]
    );
    let receipt = machine.receipt();
    assert_eq!(receipt["state"], "installed");
    assert_eq!(
        receipt["files"],
        serde_json::to_value(&one.package.manifest().files).unwrap()
    );
    assert_eq!(mode(&machine.receipts()[0]), 0o600);
    assert_eq!(mode(&machine.config().join("skills")), 0o700);
    let token = &machine.kept("token")[0];
    assert_eq!(fs::read_to_string(token).unwrap().trim(), GATEWAY);
    assert_eq!(mode(token), 0o600);

    let asked = server.asked();
    let place = machine.skill().canonicalize().unwrap();
    assert!(asked[0].target.ends_with("/skill-registry/reading/cli-install"));
    assert_eq!(asked[0].json()["path"], place.to_str().unwrap());
    assert_eq!(asked[0].json()["client"], "claude-code");
    assert_eq!(asked[0].json()["device"], receipt["device"]);
    assert_eq!(asked[1].target, "/.well-known/provost-keys.json");
    // Exactly the version that was installed, with the token of the install.
    assert!(
        asked[2]
            .target
            .ends_with("/skill-registry/reading%401.0.0/content"),
        "{}",
        asked[2].target
    );
    assert_eq!(asked[2].header("authorization"), format!("Bearer {GATEWAY}"));
}

#[tokio::test]
async fn another_folder_can_be_said_and_generic_clients_must_say_it() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[]);
    let (outcome, server) = machine.installs(one.first(), &["--client", "generic"]).await;
    refused(&outcome, 2, "--into FOLDER");
    assert!(server.asked().is_empty());
    let into = machine.home.join("other");
    let flags = ["--client", "generic", "--into", into.to_str().unwrap()];
    let (outcome, _) = machine.installs(one.first(), &flags).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(into.join("reading/SKILL.md").exists());
}

#[tokio::test]
async fn codex_and_clients_of_the_open_format_have_a_folder_of_their_own() {
    for client in ["codex", "agents"] {
        let mut machine = Machine::new();
        let one = SkillVersion::of("1.0.0", &[]);
        let (outcome, server) = machine.installs(one.first(), &["--client", client]).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(machine.home.join(".agents/skills/reading/SKILL.md").exists());
        assert_eq!(server.asked()[0].json()["client"], client);
    }
}

/// The archive's folder has the name of whichever skill had this content first.
///
/// Proves SL-2.
#[tokio::test]
async fn a_skill_that_leaves_its_name_open_is_called_as_was_signed() {
    let text = "---\nname: Reading Things\ndescription: d\n---\n";
    for first in ["writing", "reading"] {
        let mut one = SkillVersion::of("1.0.0", &[]);
        let source = folder().join(first);
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("SKILL.md"), text).unwrap();
        one.package = Package::from_folder(&source).unwrap();
        let manifest = one.package.manifest();
        one.payload["digest"] = value!(manifest.digest);
        one.payload["files"] = value!(manifest.files);
        let mut machine = Machine::new();
        let (outcome, _) = machine.installs(one.first(), &[]).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert_eq!(
            fs::read_to_string(machine.skill().join("SKILL.md")).unwrap(),
            text
        );
    }
}

/// Proves SL-1.
#[tokio::test]
async fn a_folder_of_somebody_else_stays_as_it_is() {
    let one = SkillVersion::of("1.0.0", &[]);
    let mut machine = Machine::new();
    fs::create_dir_all(machine.skill()).unwrap();
    fs::write(machine.skill().join("SKILL.md"), "mine").unwrap();
    let (outcome, server) = machine.installs(one.first(), &["--force"]).await;
    refused(&outcome, 5, "was not installed by this program");
    assert!(server.asked().is_empty());
    assert_eq!(
        fs::read_to_string(machine.skill().join("SKILL.md")).unwrap(),
        "mine"
    );

    let mut machine = Machine::new();
    fs::create_dir_all(machine.skill().parent().unwrap()).unwrap();
    symlink("/nowhere", machine.skill()).unwrap();
    let (outcome, _) = machine.installs(one.first(), &["--force"]).await;
    refused(&outcome, 5, "was not installed by this program");
}

#[tokio::test]
async fn the_place_of_another_item_is_not_taken() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[]);
    machine.installs(one.first(), &[]).await;
    let words = ["skills", "install", "@team/reading", "--reason", "r", "--force"];
    let (outcome, server) = machine.does(one.first(), &words).await;
    refused(&outcome, 5, "belongs to reading of acme");
    assert!(server.asked().is_empty());
}

/// Proves SL-1.
#[tokio::test]
async fn an_update_replaces_what_was_written_and_keeps_what_was_not() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("old", "old"), ("deep/old", "old"), ("both", "1")]);
    let two = SkillVersion::of("2.0.0", &[("new", "new"), ("both", "2")]);
    machine.installs(one.first(), &[]).await;
    fs::create_dir(machine.skill().join("cache")).unwrap();
    fs::write(machine.skill().join("cache/mine"), "mine").unwrap();
    fs::write(machine.skill().join("deep/mine"), "mine").unwrap();
    let (outcome, server) = machine.installs(two.again(), &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked().len(), 2, "the key is known");
    assert_eq!(
        machine.files(),
        [
            "reading/",
            "reading/SKILL.md",
            "reading/both",
            "reading/cache/",
            "reading/cache/mine",
            "reading/deep/",
            "reading/deep/mine",
            "reading/new",
        ]
    );
    assert_eq!(fs::read_to_string(machine.skill().join("both")).unwrap(), "2");
    assert_eq!(machine.receipt()["version"], "2.0.0");
    assert!(machine.receipt().get("previous").is_none());
}

#[tokio::test]
async fn a_new_version_does_not_take_the_place_of_somebody_elses_file() {
    for (mine, theirs) in [("new", "new"), ("new", "new/er"), ("new/er", "new")] {
        let mut machine = Machine::new();
        let one = SkillVersion::of("1.0.0", &[]);
        let two = SkillVersion::of("2.0.0", &[(theirs, "theirs")]);
        machine.installs(one.first(), &[]).await;
        let mine = machine.skill().join(mine);
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "mine").unwrap();
        let (outcome, _) = machine.installs(two.again(), &["--force"]).await;
        refused(&outcome, 5, "was not written by this program");
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        assert_eq!(
            fs::read_to_string(machine.skill().join("SKILL.md")).unwrap(),
            SKILL
        );
        fs::rename(&mine, machine.home.join("mine")).unwrap();
        let (outcome, _) = machine.installs(two.again(), &[]).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert_eq!(Package::from_folder(&machine.skill()).unwrap(), two.package);
        let beside: Vec<_> = fs::read_dir(machine.skill().parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "{beside:?}");
    }
}

/// Proves SL-1.
#[tokio::test]
async fn changed_files_are_replaced_only_by_force() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("a.sh", "a"), ("b", "b")]);
    machine.installs(one.first(), &[]).await;
    fs::write(machine.skill().join("b"), "B").unwrap();
    fs::set_permissions(machine.skill().join("a.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    let (outcome, server) = machine.installs(one.again(), &[]).await;
    refused(&outcome, 5, "changed: a.sh\nchanged: b\n");
    assert!(server.asked().is_empty());
    assert_eq!(fs::read_to_string(machine.skill().join("b")).unwrap(), "B");
    let (outcome, _) = machine.installs(one.again(), &["--force"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(Package::from_folder(&machine.skill()).unwrap(), one.package);
}

/// Proves SL-2.
#[tokio::test]
async fn nothing_is_written_that_was_not_signed_for_this() {
    let one = SkillVersion::of("1.0.0", &[]);
    let other = SkillVersion::of("1.0.0", &[("evil", "evil")]);
    let with = |pointer: &str, new: Value| {
        let mut version = one.clone();
        *version.payload.pointer_mut(pointer).unwrap() = new;
        version
    };
    let cases = [
        // The archive is another one than the signed one.
        (
            vec![one.installed(), keys(1), other.content()],
            "the archive is not the signed one",
        ),
        // The signature is of a key that the server does not list.
        (
            vec![one.installed(), keys(2), one.content()],
            "no key that is trusted",
        ),
        // A good signature over something else.
        (
            with("/organizationId", value!("other")).first(),
            "instead of reading of acme",
        ),
        (
            with("/name", value!("writing")).first(),
            "instead of reading of acme",
        ),
        (
            with("/digest", value!("sha256:00")).first(),
            "not that of the signed files",
        ),
        (with("/files", value!([])).first(), "not that of the signed files"),
        (with("/files", value!(1)).first(), "is no listing"),
        (
            vec![
                one.installed(),
                keys(1),
                Answer::Says {
                    status: 200,
                    headers: vec![],
                    body: b"no".to_vec(),
                },
            ],
            "the archive of the server is no skill",
        ),
    ];
    for (answers, words) in cases {
        let mut machine = Machine::new();
        let (outcome, _) = machine.installs(answers, &[]).await;
        refused(&outcome, 5, words);
        refused(&outcome, 5, "provost skills uninstall reading");
        assert!(machine.files().is_empty(), "{:?}", machine.files());
        assert_eq!(machine.receipt()["state"], "installing");
        assert_eq!(machine.receipt()["files"], value!([]));
        // And the way out.
        let (outcome, _) = machine
            .uninstalls(vec![forgotten("uninstalled"), reported()], &[])
            .await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(machine.receipts().is_empty());
    }
    let mut machine = Machine::new();
    let (outcome, _) = machine.installs(one.first(), &["--version", "2.0.0"]).await;
    refused(&outcome, 5, "instead of reading@2.0.0 of acme");
}

/// Proves SL-2.
#[tokio::test]
async fn a_new_key_is_refused_and_a_given_one_is_trusted() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[]);
    let two = SkillVersion {
        seed: 2,
        ..SkillVersion::of("2.0.0", &[])
    };
    machine.installs(one.first(), &[]).await;
    let (outcome, _) = machine.installs(two.first(), &[]).await;
    refused(&outcome, 5, "no key that is trusted");
    assert_eq!(Package::from_folder(&machine.skill()).unwrap(), one.package);
    let public = STANDARD.encode(key(2).public_key().as_ref());
    let (outcome, _) = machine.installs(two.again(), &["--trust-key", &public]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[tokio::test]
async fn an_uninstall_removes_what_was_written_and_reports_it() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("deep/er/a", "a"), ("b", "b")]);
    machine.installs(one.first(), &[]).await;
    let (outcome, server) = machine
        .uninstalls(vec![forgotten("uninstalled"), reported()], &[])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(machine.files().is_empty());
    assert!(machine.receipts().is_empty());
    assert!(machine.kept("token").is_empty());
    let asked = server.asked();
    assert!(asked[0].target.ends_with("/skill-registry/reading/cli-uninstall"));
    assert_eq!(asked[0].header("x-reason"), "r");
    assert!(asked[0].body.is_empty());
    assert!(asked[1].target.ends_with("/skill-installs/ins_1/removed"));

    // Once more: nothing is there, and that is no fault.
    let (outcome, _) = machine.uninstalls(vec![forgotten("not_installed")], &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.out.contains("not_installed"));
}

/// Proves SL-1.
#[tokio::test]
async fn what_was_changed_or_added_survives_an_uninstall() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("deep/a", "a"), ("b", "b")]);
    machine.installs(one.first(), &[]).await;
    fs::write(machine.skill().join("deep/a"), "A").unwrap();
    fs::write(machine.skill().join("mine"), "mine").unwrap();
    let (outcome, server) = machine.uninstalls(vec![forgotten("uninstalled")], &[]).await;
    refused(&outcome, 5, "kept: ");
    refused(&outcome, 5, "deep/a");
    assert_eq!(
        machine.files(),
        ["reading/", "reading/deep/", "reading/deep/a", "reading/mine"]
    );
    assert_eq!(
        server.asked().len(),
        1,
        "the clean-up is not reported before it is done"
    );
    assert!(machine.kept("token").is_empty(), "the server has revoked it");
    assert_eq!(machine.receipt()["state"], "uninstalling");

    let (outcome, server) = machine
        .uninstalls(vec![forgotten("not_installed"), reported()], &["--force"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(machine.files(), ["reading/", "reading/mine"]);
    assert_eq!(server.asked().len(), 2);
    assert!(machine.receipts().is_empty());
}

#[tokio::test]
async fn changed_files_can_be_kept() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("a", "a")]);
    machine.installs(one.first(), &[]).await;
    fs::write(machine.skill().join("a"), "A").unwrap();
    let answers = vec![forgotten("uninstalled"), reported()];
    let (outcome, _) = machine.uninstalls(answers, &["--keep-data"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(machine.files(), ["reading/", "reading/a"]);
    assert!(machine.receipts().is_empty());
}

#[tokio::test]
async fn an_uninstall_works_when_the_files_are_gone() {
    let mut machine = Machine::new();
    machine
        .installs(SkillVersion::of("1.0.0", &[]).first(), &[])
        .await;
    fs::remove_dir_all(machine.home.join(".claude")).unwrap();
    let (outcome, server) = machine
        .uninstalls(vec![forgotten("uninstalled"), reported()], &[])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked().len(), 2);
    assert!(machine.receipts().is_empty());
}

/// Proves SL-3.
#[tokio::test]
async fn an_uninstall_without_the_server_says_what_remains_and_can_be_repeated() {
    let mut machine = Machine::new();
    machine
        .installs(SkillVersion::of("1.0.0", &[]).first(), &[])
        .await;
    let (outcome, _) = machine.uninstalls(vec![Answer::Lost], &[]).await;
    refused(
        &outcome,
        7,
        "the files are gone from this machine, but the server was not told",
    );
    assert!(machine.files().is_empty());
    assert_eq!(machine.receipt()["state"], "removed");
    // The server forgets, and the report is lost.
    let (outcome, _) = machine
        .uninstalls(vec![forgotten("uninstalled"), Answer::Lost], &[])
        .await;
    refused(&outcome, 7, "pending clean-up");
    assert_eq!(machine.receipt()["state"], "removed");
    let (outcome, server) = machine
        .uninstalls(vec![forgotten("not_installed"), reported()], &[])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked().len(), 2);
    assert!(machine.receipts().is_empty());
}

#[tokio::test]
async fn what_the_registry_does_not_know_any_more_can_still_be_removed() {
    let mut machine = Machine::new();
    machine
        .installs(SkillVersion::of("1.0.0", &[]).first(), &[])
        .await;
    let unknown = || refusal(404, "not_found", "no such item");
    let (outcome, _) = machine.uninstalls(vec![unknown(), unknown()], &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(machine.files().is_empty() && machine.receipts().is_empty());
    let (outcome, _) = machine.uninstalls(vec![unknown()], &[]).await;
    assert_eq!(outcome.code, 4, "{outcome:?}");
}

/// Proves SL-3.
#[tokio::test]
async fn an_interrupted_install_can_be_finished_or_undone() {
    let one = SkillVersion::of("1.0.0", &[("a", "a"), ("gone", "x")]);
    let two = SkillVersion::of("2.0.0", &[("a", "A")]);
    for (at, finish) in (0..4).flat_map(|at| [(at, true), (at, false)]) {
        let mut machine = Machine::new();
        machine.installs(one.first(), &[]).await;
        fs::write(machine.skill().join("mine"), "mine").unwrap();
        let old = machine.skill().with_file_name(".reading.provost-old");
        let new = machine.skill().with_file_name(".reading.provost-new");
        // As `install` leaves it when it is killed at these points.
        machine.change_receipt(|receipt| {
            receipt["state"] = "installing".into();
            receipt["version"] = "2.0.0".into();
            receipt["previous"] = receipt["files"].take();
            receipt["files"] = serde_json::to_value(&two.package.manifest().files).unwrap();
        });
        match at {
            0 => {}
            1 => fs::rename(machine.skill(), &old).unwrap(),
            2 => {
                fs::rename(machine.skill(), &old).unwrap();
                fs::create_dir(&new).unwrap();
                fs::write(new.join("SKILL.md"), "half").unwrap();
            }
            _ => {
                fs::rename(machine.skill(), &old).unwrap();
                two.package.unpack(&machine.skill()).unwrap();
            }
        }
        let list = machine.alone(&["skills", "list"]).await;
        assert!(list.out.contains("\"installing\""), "{list:?}");
        if finish {
            let (outcome, _) = machine.installs(two.again(), &[]).await;
            assert_eq!(outcome.code, 0, "{at}: {outcome:?}");
            assert_eq!(
                machine.files(),
                ["reading/", "reading/SKILL.md", "reading/a", "reading/mine"],
                "{at}"
            );
            assert_eq!(fs::read_to_string(machine.skill().join("a")).unwrap(), "A");
            assert_eq!(machine.receipt()["state"], "installed");
        } else {
            let (outcome, _) = machine
                .uninstalls(vec![forgotten("uninstalled"), reported()], &[])
                .await;
            assert_eq!(outcome.code, 0, "{at}: {outcome:?}");
            assert_eq!(machine.files(), ["reading/", "reading/mine"], "{at}");
            assert!(machine.receipts().is_empty());
        }
    }
}

#[tokio::test]
async fn the_list_shows_in_which_state_a_skill_is() {
    let mut machine = Machine::new();
    let none = machine.alone(&["skills", "list"]).await;
    assert_eq!(none.code, 0);
    assert_eq!(none.out, "{\n  \"skills\": []\n}\n");
    machine
        .installs(SkillVersion::of("1.0.0", &[("a", "a")]).first(), &[])
        .await;
    let state = async |machine: &Machine| {
        let list = machine.alone(&["skills", "list", "--output", "json"]).await;
        let list: Value = serde_json::from_str(&list.out).unwrap();
        list["skills"][0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&machine).await, "ok");
    fs::remove_file(machine.skill().join("a")).unwrap();
    assert_eq!(state(&machine).await, "missing");
    fs::write(machine.skill().join("SKILL.md"), "changed").unwrap();
    assert_eq!(state(&machine).await, "modified");

    let item = |status: &str, latest: &str| {
        json(
            200,
            &value!({ "item": { "status": status, "latestVersion": latest }, "version": { "status": "available" } }),
        )
    };
    for (answer, words) in [
        (item("available", "1.0.0"), "\"registry\": \"current\""),
        (item("available", "1.1.0"), "\"registry\": \"updatable\""),
        (item("available", "1.1.0"), "\"latestVersion\": \"1.1.0\""),
        (item("withdrawn", "1.0.0"), "\"registry\": \"withdrawn\""),
        (
            refusal(404, "not_found", "no such item"),
            "\"registry\": \"unknown\"",
        ),
    ] {
        let (outcome, _) = machine
            .does(vec![answer], &["skills", "list", "--ask-server"])
            .await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.out.contains(words), "{outcome:?}");
    }
}

#[tokio::test]
async fn verify_compares_files_receipt_and_signature_without_a_server() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[("run.sh", "a"), ("b", "b")]);
    machine.installs(one.first(), &[]).await;
    fs::write(machine.skill().join("mine"), "mine").unwrap();
    let outcome = machine.alone(&["skills", "verify", "reading"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.out.contains("\"signature\": \"good\""), "{outcome:?}");
    assert!(outcome.out.contains("mine"), "{outcome:?}");
    refused(
        &machine.alone(&["skills", "verify", "writing"]).await,
        4,
        "is not installed",
    );

    fs::set_permissions(machine.skill().join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(machine.skill().join("b")).unwrap();
    let outcome = machine.alone(&["skills", "verify"]).await;
    refused(&outcome, 5, "reading@1.0.0: changed: run.sh");
    refused(&outcome, 5, "reading@1.0.0: missing: b");

    // Who changes a file and the receipt cannot change the signature.
    machine.installs(one.again(), &["--force"]).await;
    fs::write(machine.skill().join("b"), "c").unwrap();
    let digest = provost_skill_package::sha256(b"c");
    machine.change_receipt(|receipt| {
        for file in receipt["files"].as_array_mut().unwrap() {
            if file["path"] == "b" {
                file["sha256"] = digest.as_str().into();
            }
        }
    });
    let outcome = machine.alone(&["skills", "verify"]).await;
    refused(&outcome, 5, "the receipt is not what was signed");
    assert!(outcome.out.contains("\"state\": \"ok\""), "{outcome:?}");
    // Nor can a signature of another server's key stand in.
    let forged = SkillVersion { seed: 9, ..one };
    machine.change_receipt(|receipt| receipt["envelope"] = forged.envelope());
    refused(
        &machine.alone(&["skills", "verify"]).await,
        5,
        "no key that is trusted",
    );
}

/// Proves SL-1.
#[tokio::test]
async fn a_receipt_cannot_lead_out_of_its_folder() {
    let mut machine = Machine::new();
    machine
        .installs(SkillVersion::of("1.0.0", &[("deep/a", "a")]).first(), &[])
        .await;
    let outside = machine.home.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "a").unwrap();
    // A folder on the way became a link.
    fs::remove_dir_all(machine.skill().join("deep")).unwrap();
    symlink(&outside, machine.skill().join("deep")).unwrap();
    let (outcome, _) = machine
        .uninstalls(vec![forgotten("uninstalled"), reported()], &["--force"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outside.join("a").exists());

    let mut machine = Machine::new();
    machine
        .installs(SkillVersion::of("1.0.0", &[]).first(), &[])
        .await;
    machine.change_receipt(|receipt| {
        let mut file = receipt["files"][0].clone();
        file["path"] = "../../../outside".into();
        receipt["files"].as_array_mut().unwrap().push(file);
    });
    fs::write(machine.home.join("outside"), SKILL).unwrap();
    let (outcome, _) = machine
        .uninstalls(vec![forgotten("uninstalled")], &["--force"])
        .await;
    refused(&outcome, 9, "which no skill can have");
    assert!(machine.home.join("outside").exists());
}

#[tokio::test]
async fn two_commands_do_not_change_the_skills_at_once() {
    let mut machine = Machine::new();
    let one = SkillVersion::of("1.0.0", &[]);
    machine.installs(one.first(), &[]).await;
    let lock = fs::File::options()
        .write(true)
        .open(machine.config().join("skills/lock"))
        .unwrap();
    lock.lock().unwrap();
    let (outcome, server) = machine.installs(one.again(), &[]).await;
    refused(&outcome, 5, "another `provost skills` command");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn publishing_checks_first_and_sends_one_form() {
    let source = folder();
    let skill = source.join("reading");
    fs::create_dir(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: Reading\n---\n").unwrap();
    symlink("/etc/passwd", skill.join("passwd")).unwrap();
    let publish = |path: &Path| {
        [
            "skills",
            "publish",
            path.to_str().unwrap(),
            "--reason",
            "r",
            "--namespace",
            "@team",
            "--version",
            "1.0.0",
        ]
        .map(str::to_owned)
    };
    let run = async |path: &Path| {
        let answer = json(
            201,
            &value!({ "item": { "ref": "@team/reading" }, "version": { "version": "1.0.0" }, "created": true }),
        );
        let words = publish(path);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut machine = Machine::new();
        machine.does(vec![answer], &words).await
    };
    let (outcome, server) = run(&skill).await;
    refused(&outcome, 5, "passwd: a link cannot be part of a skill");
    refused(&outcome, 5, "SKILL.md: description is missing");
    assert!(server.asked().is_empty());
    fs::remove_file(skill.join("passwd")).unwrap();

    fs::write(skill.join("SKILL.md"), SKILL).unwrap();
    let package = Package::from_folder(&skill).unwrap();
    let archive = source.join("some.tar.gz");
    fs::write(&archive, package.to_archive()).unwrap();
    for path in [&skill, &archive] {
        let (outcome, server) = run(path).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(
            outcome.err.contains("published @team/reading@1.0.0"),
            "{outcome:?}"
        );
        let asked = &server.asked()[0];
        assert!(
            asked
                .target
                .ends_with("/skill-registry?namespace=%40team&version=1.0.0"),
            "{}",
            asked.target
        );
        assert_eq!(asked.header("content-type"), "application/gzip");
        assert_eq!(asked.body, package.to_archive());
    }
    // What clients load is sent with the names that hooks may say.
    let titled = source.join("Title Case");
    fs::create_dir(&titled).unwrap();
    fs::write(
        titled.join("SKILL.md"),
        "---\nname: reading\ndescription: read when: asked\n---\n",
    )
    .unwrap();
    let (outcome, server) = run(&titled).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for words in [
        "warning: description has a colon",
        "warning: the registry calls the skill \"reading\"; \"Title Case\" means it as well",
    ] {
        assert!(outcome.err.contains(words), "{outcome:?}");
    }
    let target = server.asked()[0].target.clone();
    assert!(
        target.ends_with("&folder=Title%20Case") || target.ends_with("&folder=Title+Case"),
        "{target}"
    );
    fs::write(
        titled.join("SKILL.md"),
        "---\nname: My Skill!\ndescription: d\n---\n",
    )
    .unwrap();
    let (outcome, server) = run(&titled).await;
    refused(&outcome, 5, "provost skills publish FOLDER --name my-skill");
    assert!(server.asked().is_empty());

    refused(&run(&source.join("absent")).await.0, 9, "cannot read");
    fs::write(source.join("text"), "text").unwrap();
    refused(
        &run(&source.join("text")).await.0,
        5,
        "no folder, no tar.gz and no zip",
    );
}

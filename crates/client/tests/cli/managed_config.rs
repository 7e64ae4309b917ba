//! Pulling a managed configuration: what is trusted, what is written, what stays.

use crate::http::{Answer, Server, json, refusal};
use crate::provost::{Outcome, Provost, folder, mode, program};
use crate::signer::{Signer, keys_document};
use provost_client::cli::sha256_hex;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROFILE: &str = "prof_01m7vv9kh2kev1h5hjrtv1gvsk";
const FIRST: &str = "{\"model\":\"first\"}\n";
const SECOND: &str = "{\"model\":\"second\"}\n";

/// A machine with its files.
struct Machine {
    home: PathBuf,
    file: PathBuf,
    defaults: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let home = folder();
        let etc = home.join("etc");
        fs::create_dir(&etc).expect("a folder");
        Self {
            file: etc.join("managed.json"),
            defaults: etc.join("defaults.json"),
            home,
        }
    }

    async fn pulls(&self, server: &Server, more: &[&str]) -> Outcome {
        let file = self.file.to_str().expect("UTF-8");
        let command = [
            "managed-config",
            "pull",
            "--profile",
            PROFILE,
            "--to",
            file,
            "--retries",
            "0",
        ];
        let target = ["--target-id", "m-1", "--target-name", "laptop"];
        let whole = [&command[..], &target, more].concat();
        Provost::script()
            .home(self.home.clone())
            .does(server, &whole)
            .await
    }

    async fn verifies(&self) -> Outcome {
        self.verified_by(&self.home, &[]).await
    }

    async fn verified_by(&self, home: &Path, more: &[&str]) -> Outcome {
        let root = provost_client::command();
        let file = self.file.to_str().expect("UTF-8");
        let run = async |matches: &clap::ArgMatches, terminal: &provost_client::cli::Terminal| {
            provost_client::ask(matches, terminal).await
        };
        let provost = Provost::script().home(home.to_owned()).token(None);
        let whole = [&["managed-config", "verify", file], more].concat();
        provost.played(root, &whole, run).await
    }

    fn content(&self) -> String {
        fs::read_to_string(&self.file).expect("the file")
    }

    fn kept(&self) -> PathBuf {
        self.file.with_file_name(".managed.json.provost.json")
    }

    /// Names of what lies beside the file: no draft may stay.
    fn drafts(&self) -> usize {
        let entries = fs::read_dir(self.file.parent().expect("a folder")).expect("the folder");
        let is_draft = |name: &str| {
            Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "new")
        };
        entries
            .filter(|e| is_draft(&e.as_ref().expect("an entry").file_name().to_string_lossy()))
            .count()
    }
}

/// A release as a server answers it.
#[derive(Clone)]
struct Release {
    manifest: Value,
    files: Value,
    interval: u64,
}

impl Release {
    fn new(version: u64, text: &str) -> Self {
        let mut release = Self {
            manifest: json!({
                "contentDigest": format!("sha256:{}", sha256_hex(text.as_bytes())),
                "createdAt": "2026-11-20T03:15:00.000Z", "files": [], "onUnavailable": "last_known",
                "organizationId": "acme", "profileId": PROFILE, "releaseId": format!("mcr_{version}"),
                "signedAt": "2026-11-20T03:15:00.000Z", "storeEpoch": 0, "target": "codex", "version": version,
            }),
            files: json!([]),
            interval: 3600,
        };
        release.add("requirements.toml", "enforced", text);
        release
    }

    fn add(&mut self, name: &str, role: &str, text: &str) {
        let entry = json!({ "mode": "0644", "name": name, "role": role, "sha256": sha256_hex(text.as_bytes()),
            "sizeBytes": text.len() });
        self.manifest["files"].as_array_mut().expect("a list").push(entry);
        let content = json!({ "name": name, "role": role, "content": text });
        self.files.as_array_mut().expect("a list").push(content);
    }

    fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.manifest[member] = value.into();
        self
    }

    fn signed(&self, signer: &Signer) -> Answer {
        let payload = self.manifest.to_string();
        json(
            200,
            &json!({
                "profile": { "id": PROFILE, "name": "Laptops", "pollIntervalSeconds": self.interval },
                "release": {}, "files": self.files,
                "envelope": signer.sign("application/vnd.provost.release+json", payload.as_bytes()),
            }),
        )
    }
}

fn signer() -> Signer {
    Signer::new("signing-1", 1)
}

fn keys() -> Answer {
    json(200, &keys_document(&[&signer()], &signer()))
}

fn reported() -> Answer {
    json(200, &json!({ "target": {} }))
}

/// A machine that has pulled version 1.
async fn pulled() -> Machine {
    pulled_of(&Release::new(1, FIRST)).await
}

async fn pulled_of(release: &Release) -> Machine {
    let machine = Machine::new();
    let server = Server::playing([release.signed(&signer()), keys(), reported()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    machine
}

/// Proves DU-2.
#[tokio::test]
async fn a_pull_writes_the_signed_file_and_reports_it() {
    let machine = Machine::new();
    let release = Release::new(1, FIRST);
    let server = Server::playing([release.signed(&signer()), keys(), reported()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!((machine.content().as_str(), mode(&machine.file)), (FIRST, 0o644));
    assert!(
        outcome.err.contains("trusting the key signing-1"),
        "{}",
        outcome.err
    );
    let answer: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        (&answer["outcome"], &answer["version"]),
        (&json!("written"), &json!(1))
    );
    let asked = server.asked();
    let base = format!("/api/headless/v1/organizations/acme/managed-config/profiles/{PROFILE}");
    let targets: Vec<&str> = asked.iter().map(|a| a.target.as_str()).collect();
    assert_eq!(
        targets,
        [
            format!("{base}/current").as_str(),
            "/.well-known/provost-keys.json",
            format!("{base}/reports").as_str(),
        ]
    );
    let mut report = asked[2].json();
    assert_eq!(report["idempotencyKey"].as_str().map(str::len), Some(32));
    report
        .as_object_mut()
        .expect("an object")
        .remove("idempotencyKey");
    assert_eq!(
        report,
        json!({
            "targetId": "m-1", "targetName": "laptop", "releaseId": "mcr_1", "state": "verified",
            "contentDigest": release.manifest["contentDigest"], "reason": "report of managed configuration",
        })
    );
    let pins = machine.home.join(".config/provost/known-keys.json");
    assert_eq!(mode(&pins), 0o600);
    let kept = machine.file.with_file_name(".managed.json.provost.json");
    assert_eq!(mode(&kept), 0o600);
    // An earlier version made it open to others.
    fs::set_permissions(&kept, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("the file");
    assert_eq!(machine.verifies().await.code, 0);
    assert_eq!(mode(&kept), 0o600);
}

#[tokio::test]
async fn a_newer_release_replaces_and_the_same_one_changes_nothing() {
    let machine = pulled().await;
    let same = Server::playing([Release::new(1, FIRST).signed(&signer()), reported()]).await;
    let outcome = machine.pulls(&same, &[]).await;
    assert!(
        outcome.code == 0 && outcome.out.contains("unchanged"),
        "{outcome:?}"
    );
    let newer = Server::playing([Release::new(2, SECOND).signed(&signer()), reported()]).await;
    assert_eq!(machine.pulls(&newer, &[]).await.code, 0);
    assert_eq!((machine.content().as_str(), machine.drafts()), (SECOND, 0));
}

/// Proves MP-2.
#[tokio::test]
async fn a_release_that_is_not_newer_is_refused_and_said_so() {
    let offers = [
        Release::new(4, SECOND),
        Release::new(9, SECOND).with("storeEpoch", 0),
        Release::new(5, SECOND).with("storeEpoch", 1),
        Release::new(5, FIRST)
            .with("storeEpoch", 1)
            .with("signedAt", "2026-11-20T03:14:59.999Z"),
    ];
    for offer in offers {
        let machine = pulled_of(&Release::new(5, FIRST).with("storeEpoch", 1)).await;
        let server = Server::playing([offer.signed(&signer()), reported()]).await;
        let outcome = machine.pulls(&server, &[]).await;
        assert_eq!(outcome.code, 5, "{outcome:?}");
        assert_eq!(machine.content(), FIRST);
        let report = server.asked()[1].json();
        assert_eq!(
            (&report["state"], &report["releaseId"]),
            (&json!("failed"), &json!("mcr_5"))
        );
        assert_eq!(
            report["contentDigest"],
            format!("sha256:{}", sha256_hex(FIRST.as_bytes()))
        );
    }
}

/// Proves MP-1.
#[tokio::test]
async fn what_was_not_signed_for_this_profile_is_not_written() {
    let mut tampered = Release::new(2, SECOND);
    tampered.files[0]["content"] = "{\"model\":\"evil\"}\n".into();
    let mut escaping = Release::new(2, SECOND);
    escaping.add("../evil", "defaults", "x");
    let mut wide = Release::new(2, SECOND);
    wide.manifest["files"][0]["mode"] = "4755".into();
    let offers = [
        tampered.signed(&signer()),
        escaping.signed(&signer()),
        wide.signed(&signer()),
        Release::new(2, SECOND)
            .with("organizationId", "other")
            .signed(&signer()),
        Release::new(2, SECOND)
            .with("profileId", "prof_2")
            .signed(&signer()),
        json(200, &json!({ "files": [] })),
    ];
    for offer in offers {
        let machine = pulled().await;
        let server = Server::playing([offer, reported()]).await;
        let outcome = machine.pulls(&server, &[]).await;
        assert!(matches!(outcome.code, 5 | 8), "{outcome:?}");
        assert_eq!(machine.content(), FIRST);
        assert_eq!(machine.verifies().await.code, 0);
    }
}

#[tokio::test]
async fn a_release_with_hidden_values_is_refused_and_the_scope_named() {
    let machine = pulled().await;
    let hidden = || {
        let files = Release::new(2, "{\"env\":{\"A\":\"[redacted]\"}}\n").files;
        json(
            200,
            &json!({ "profile": { "id": PROFILE }, "release": {}, "redacted": true, "files": files }),
        )
    };
    let server = Server::playing([hidden()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(outcome.err.contains("managed_config:pull"), "{}", outcome.err);
    assert_eq!((machine.content().as_str(), machine.drafts()), (FIRST, 0));
    assert_eq!(
        server.asked().len(),
        1,
        "no report, which would be refused as well"
    );
    assert_eq!(machine.verifies().await.code, 0);
    // A machine that never pulled gets no file.
    let fresh = Machine::new();
    let server = Server::playing([hidden()]).await;
    assert_eq!(fresh.pulls(&server, &[]).await.code, 3);
    assert!(!fresh.file.exists());
}

/// Proves MP-1.
#[tokio::test]
async fn a_signature_over_another_kind_of_document_is_refused() {
    let machine = pulled().await;
    let payload = Release::new(2, SECOND).manifest.to_string();
    let mut answer = json!({ "files": Release::new(2, SECOND).files });
    answer["envelope"] = signer().sign("application/vnd.provost.skill+json", payload.as_bytes());
    answer["envelope"]["payloadType"] = "application/vnd.provost.release+json".into();
    let server = Server::playing([json(200, &answer), keys()]).await;
    assert_eq!(machine.pulls(&server, &[]).await.code, 5);
    assert_eq!(machine.content(), FIRST);
}

/// Proves CL-4.
#[tokio::test]
async fn an_unknown_key_is_refused_until_it_is_named() {
    let machine = pulled().await;
    let other = Signer::new("signing-2", 2);
    let offer = || Release::new(2, SECOND).signed(&other);
    let own_list = || json(200, &keys_document(&[&other], &other));
    let server = Server::playing([offer(), own_list(), reported()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!(outcome.code, 5, "{outcome:?}");
    assert!(outcome.err.contains("--trust-key"), "{}", outcome.err);
    assert_eq!(machine.content(), FIRST);
    let server = Server::playing([offer(), reported()]).await;
    assert_eq!(
        machine
            .pulls(&server, &["--trust-key", &other.public()])
            .await
            .code,
        0
    );
    assert_eq!(machine.content(), SECOND);
    let server = Server::playing([offer(), reported()]).await;
    assert_eq!(machine.pulls(&server, &[]).await.code, 0);
}

/// Proves CL-4.
#[tokio::test]
async fn a_new_key_that_a_pinned_one_vouches_for_is_pinned() {
    let machine = pulled().await;
    let other = Signer::new("signing-2", 2);
    let announced = json(200, &keys_document(&[&signer(), &other], &signer()));
    let server = Server::playing([Release::new(2, SECOND).signed(&other), announced, reported()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!(
        (outcome.code, machine.content().as_str()),
        (0, SECOND),
        "{outcome:?}"
    );
    assert!(
        outcome.err.contains("trusting the key signing-2"),
        "{}",
        outcome.err
    );
    let server = Server::playing([Release::new(3, FIRST).signed(&other), reported()]).await;
    assert_eq!(machine.pulls(&server, &[]).await.code, 0);
}

/// Proves CL-4.
#[tokio::test]
async fn a_key_that_is_given_at_the_first_contact_is_the_only_one_that_counts() {
    let machine = Machine::new();
    let other = Signer::new("signing-2", 2);
    let offer = Release::new(1, FIRST).signed(&signer());
    let server = Server::playing([offer, keys(), reported()]).await;
    let outcome = machine.pulls(&server, &["--trust-key", &other.public()]).await;
    assert_eq!(outcome.code, 5, "{outcome:?}");
    assert!(!machine.file.exists());
}

#[tokio::test]
async fn a_changed_file_is_reported_and_written_again() {
    let machine = pulled().await;
    fs::write(&machine.file, "{}").expect("a change");
    assert_eq!(machine.verifies().await.code, 1);
    let offer = Release::new(1, FIRST).signed(&signer());
    let server = Server::playing([offer, reported(), reported()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert!(outcome.code == 0 && outcome.out.contains("healed"), "{outcome:?}");
    assert_eq!(machine.content(), FIRST);
    let (drifted, healed) = (server.asked()[1].json(), server.asked()[2].json());
    assert_eq!(drifted["contentDigest"], format!("sha256:{}", sha256_hex(b"{}")));
    assert_eq!(
        (&drifted["state"], &healed["state"]),
        (&json!("failed"), &json!("verified"))
    );
    assert!(
        healed["message"].as_str().is_some_and(|m| m.contains("healed")),
        "{healed}"
    );
}

#[tokio::test]
async fn a_changed_file_comes_back_from_the_kept_copy_while_the_server_hangs() {
    let machine = pulled().await;
    fs::write(&machine.file, "{}").expect("a change");
    let server = Server::playing([Answer::Silent]).await;
    let healed = async {
        for _ in 0..1_000 {
            if machine.content() == FIRST {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    };
    tokio::select! {
        outcome = machine.pulls(&server, &[]) => panic!("nobody answered: {outcome:?}"),
        is_healed = healed => assert!(is_healed, "ten seconds are over"),
    }
}

/// Proves MP-1.
#[tokio::test]
async fn without_a_server_the_last_good_file_stays_and_comes_back() {
    let machine = pulled().await;
    for answer in [
        Answer::Lost,
        refusal(503, "unavailable", "not now"),
        refusal(401, "token_revoked", "revoked"),
    ] {
        fs::remove_file(&machine.file).expect("the file");
        let server = Server::playing([answer]).await;
        let outcome = machine.pulls(&server, &[]).await;
        assert_ne!(outcome.code, 0, "{outcome:?}");
        assert!(
            outcome.err.contains("holds version 1, pulled before"),
            "{}",
            outcome.err
        );
        assert_eq!((machine.content().as_str(), mode(&machine.file)), (FIRST, 0o644));
    }
}

#[tokio::test]
async fn a_profile_that_fails_closed_is_not_verified_after_three_intervals() {
    for (policy, late) in [("fail_closed", 6), ("last_known", 0)] {
        let machine = pulled_of(&Release::new(1, FIRST).with("onUnavailable", policy)).await;
        assert_eq!(machine.verifies().await.code, 0);
        let mut kept: Value = serde_json::from_slice(&fs::read(machine.kept()).expect("it")).expect("JSON");
        kept["confirmedAt"] = "2020-01-01T00:00:00.000Z".into();
        fs::write(machine.kept(), kept.to_string()).expect("a file");
        assert_eq!(machine.verifies().await.code, late, "{policy}");
        let outcome = machine.pulls(&Server::playing([Answer::Lost]).await, &[]).await;
        assert_eq!((outcome.code, machine.content().as_str()), (7, FIRST));
        assert_eq!(outcome.err.contains("fails closed"), late == 6, "{}", outcome.err);
    }
}

#[tokio::test]
async fn what_is_kept_is_verified_before_it_is_believed() {
    let machine = pulled().await;
    let kept = fs::read_to_string(machine.kept()).expect("it");
    let other = Signer::new("signing-2", 2);
    let mut forged: Value = serde_json::from_str(&kept).expect("JSON");
    let payload = Release::new(1, SECOND).manifest.to_string();
    forged["envelope"] = other.sign("application/vnd.provost.release+json", payload.as_bytes());
    forged["files"] = Release::new(1, SECOND).files;
    fs::write(machine.kept(), forged.to_string()).expect("a file");
    fs::write(&machine.file, SECOND).expect("a file");
    assert_eq!(machine.verifies().await.code, 5);
    fs::write(machine.kept(), "{").expect("a file");
    assert_eq!(machine.verifies().await.code, 5);
    let server = Server::playing([Release::new(1, FIRST).signed(&signer())]).await;
    assert_eq!(machine.pulls(&server, &[]).await.code, 5);
    assert_eq!(server.asked().len(), 0);
    fs::remove_file(machine.kept()).expect("the file");
    assert_eq!(machine.verifies().await.code, 4);
}

#[tokio::test]
async fn another_user_verifies_with_a_key_that_is_named() {
    let machine = pulled().await;
    let home = folder();
    assert_eq!(machine.verified_by(&home, &[]).await.code, 5);
    let key = signer().public();
    assert_eq!(machine.verified_by(&home, &["--trust-key", &key]).await.code, 0);
    assert_eq!(
        machine
            .verified_by(&home, &["--trust-key", "c2hvcnQ="])
            .await
            .code,
        2
    );
}

/// Proves MP-3.
#[tokio::test]
async fn a_link_is_replaced_and_what_it_points_to_is_not_touched() {
    let machine = Machine::new();
    let victim = machine.home.join("victim");
    fs::write(&victim, "mine").expect("a file");
    std::os::unix::fs::symlink(&victim, &machine.file).expect("a link");
    let server = Server::playing([Release::new(1, FIRST).signed(&signer()), keys(), reported()]).await;
    assert_eq!(machine.pulls(&server, &[]).await.code, 0);
    assert!(fs::symlink_metadata(&machine.file).expect("the file").is_file());
    assert_eq!(machine.content(), FIRST);
    assert_eq!(fs::read_to_string(&victim).expect("the file"), "mine");
}

/// Proves MP-3.
#[tokio::test]
async fn a_file_that_cannot_be_written_is_reported_as_failed() {
    let machine = Machine::new();
    fs::create_dir(&machine.file).expect("a folder in its place");
    let server = Server::playing([Release::new(1, FIRST).signed(&signer()), keys(), reported()]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!((outcome.code, machine.drafts()), (9, 0), "{outcome:?}");
    let report = server.asked()[2].json();
    assert_eq!(report["state"], "failed");
    assert_eq!(report["contentDigest"], format!("sha256:{}", "0".repeat(64)));
    assert!(!machine.kept().exists());
    // A folder in which nobody, whoever runs the test, can make a file.
    let server = Server::playing([Release::new(1, FIRST).signed(&signer()), keys(), reported()]).await;
    let nowhere = Machine {
        file: "/proc/managed.json".into(),
        ..machine
    };
    assert_eq!(nowhere.pulls(&server, &[]).await.code, 9);
}

/// Proves MP-3.
#[tokio::test]
async fn two_pulls_at_once_leave_one_whole_file() {
    let machine = Machine::new();
    let offers = || [Release::new(1, FIRST).signed(&signer()), keys(), reported()];
    let (one, two) = (Server::playing(offers()).await, Server::playing(offers()).await);
    let (first, second) = tokio::join!(machine.pulls(&one, &[]), machine.pulls(&two, &[]));
    assert_eq!((first.code, second.code), (0, 0), "{first:?} {second:?}");
    assert_eq!((machine.content().as_str(), machine.drafts()), (FIRST, 0));
}

#[tokio::test]
async fn a_file_is_not_taken_from_another_profile() {
    let machine = pulled().await;
    let server = Server::playing([]).await;
    let file = machine.file.to_str().expect("UTF-8");
    let command = [
        "managed-config",
        "pull",
        "--profile",
        "prof_other",
        "--to",
        file,
        "--target-id",
        "m",
    ];
    let outcome = Provost::script()
        .home(machine.home.clone())
        .does(&server, &command)
        .await;
    assert_eq!((outcome.code, server.asked().len()), (5, 0), "{outcome:?}");
    assert!(outcome.err.contains(PROFILE), "{}", outcome.err);
}

#[tokio::test]
async fn a_profile_is_found_by_its_name() {
    let machine = Machine::new();
    let page =
        json!({ "profiles": [{ "id": "prof_x", "name": "Other" }, { "id": PROFILE, "name": "Laptops" }] });
    let server = Server::playing([
        json(200, &page),
        Release::new(1, FIRST).signed(&signer()),
        keys(),
        keys(),
        reported(),
    ])
    .await;
    let file = machine.file.to_str().expect("UTF-8");
    let command = [
        "managed-config",
        "pull",
        "--profile",
        "laptops",
        "--to",
        file,
        "--target-id",
        "m",
    ];
    let outcome = Provost::script()
        .home(machine.home.clone())
        .does(&server, &command)
        .await;
    assert_eq!(
        (outcome.code, machine.content().as_str()),
        (0, FIRST),
        "{outcome:?}"
    );
    let server = Server::playing([json(200, &page)]).await;
    let command = [
        "managed-config",
        "pull",
        "--profile",
        "none",
        "--to",
        file,
        "--target-id",
        "m",
    ];
    assert_eq!(
        Provost::script()
            .home(machine.home.clone())
            .does(&server, &command)
            .await
            .code,
        4
    );
}

#[tokio::test]
async fn defaults_are_written_and_go_with_the_release_that_had_them() {
    let mut release = Release::new(1, FIRST);
    release.add("managed_config.toml", "defaults", "model = 1\n");
    let machine = Machine::new();
    let to = machine.defaults.to_str().expect("UTF-8").to_owned();
    let server = Server::playing([release.signed(&signer()), keys(), reported()]).await;
    assert_eq!(machine.pulls(&server, &["--defaults-to", &to]).await.code, 0);
    assert_eq!(
        fs::read_to_string(&machine.defaults).expect("the file"),
        "model = 1\n"
    );
    let server = Server::playing([Release::new(2, SECOND).signed(&signer()), reported()]).await;
    assert_eq!(machine.pulls(&server, &["--defaults-to", &to]).await.code, 0);
    assert!(!machine.defaults.exists());
}

#[tokio::test]
async fn starting_values_of_a_user_never_replace_a_users_file() {
    let mut release = Release::new(1, FIRST).with("target", "claude_code");
    release.add("settings.json", "defaults", "{\"a\":1}\n");
    let machine = Machine::new();
    fs::write(&machine.defaults, "mine").expect("a file");
    let to = machine.defaults.to_str().expect("UTF-8").to_owned();
    let server = Server::playing([release.signed(&signer()), keys(), reported()]).await;
    let outcome = machine.pulls(&server, &["--defaults-to", &to]).await;
    assert!(outcome.code == 0 && outcome.err.contains("stays"), "{outcome:?}");
    assert_eq!(fs::read_to_string(&machine.defaults).expect("the file"), "mine");
}

#[tokio::test]
async fn a_report_that_is_not_taken_does_not_fail_the_pull() {
    let machine = Machine::new();
    let refused = refusal(403, "insufficient_scope", "no");
    let server = Server::playing([Release::new(1, FIRST).signed(&signer()), keys(), refused]).await;
    let outcome = machine.pulls(&server, &[]).await;
    assert_eq!((outcome.code, machine.content().as_str()), (0, FIRST));
    assert!(
        outcome.err.contains("the report was not taken: no"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_watching_pull_heals_and_ends_cleanly_on_a_signal() {
    let machine = pulled().await;
    fs::write(&machine.file, "{}").expect("a change");
    let second = Release::new(2, SECOND);
    let offers = [
        Release::new(1, FIRST).signed(&signer()),
        reported(),
        reported(),
        second.signed(&signer()),
        reported(),
        second.signed(&signer()),
        second.signed(&signer()),
    ];
    let server = Server::playing(offers).await;
    let file = machine.file.to_str().expect("UTF-8");
    let pull = ["managed-config", "pull", "--profile", PROFILE, "--to", file];
    let watch = ["--watch", "--interval", "1", "--target-id", "m"];
    let to = ["--url", &server.url, "--organization", "acme"];
    let child = program(&[&pull[..], &watch, &to].concat())
        .env("HOME", &machine.home)
        .env("PROVOST_TOKEN", crate::provost::TOKEN)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program");
    let pulled_twice = async {
        while server.asked().len() < 6 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), pulled_twice)
        .await
        .expect("rounds");
    let id = child.id().to_string();
    let killed = std::process::Command::new("kill").args(["-TERM", &id]).status();
    assert!(killed.expect("kill").success());
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = ended.await.expect("no panic").expect("its end");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("version 1 healed") && said.contains("version 2 written"),
        "{said}"
    );
    assert!(said.ends_with("stopped\n"), "{said}");
    assert_eq!(machine.content(), SECOND);
}

//! The agent keeps the managed settings that people assigned to its device, and nothing else.

use super::Laptop;
use crate::areas::fleet::enrolment_token;
use crate::catalog::managed_config::{profile, publish};
use crate::support::{App, each};
use provost_agent::{Agent, Enrolment, Loop, Mode, Once, Trouble, enrol, once};
use provost_client::agent::Configuration;
use provost_kernel::Secret;
use provost_kernel::entropy::SystemEntropy;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

/// A machine with its own folder of settings, whose agent is the machine's.
struct Desk {
    laptop: Laptop,
    id: String,
    configuration: Configuration,
}

impl Desk {
    async fn new(app: &Arc<App>, mode: Mode) -> Self {
        let laptop = Laptop::new(app);
        let word = mode.word();
        let (_, secret) = enrolment_token(app, json!({ "mode": word })).await;
        let enrolment = Enrolment {
            door: &laptop.road,
            organization: &app.organization,
            token: &Secret::new(secret),
            name: "desk",
            mode,
            allow_plain_http: false,
            ca_cert: None,
            anew: false,
            clock: &*laptop.clock,
            entropy: &SystemEntropy,
        };
        let (device, _) = enrol(&laptop.folder(), &enrolment).await.unwrap();
        let root = laptop.home.join("root");
        fs::create_dir_all(root.join("etc/claude-code")).unwrap();
        let desk = Self {
            laptop,
            id: device.device_id,
            configuration: Configuration::new(root),
        };
        desk.goes_on().await;
        desk
    }

    fn file(&self) -> PathBuf {
        self.laptop
            .home
            .join("root/etc/claude-code/managed-settings.json")
    }

    fn holds(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    async fn round(&self) -> Result<Once, Trouble> {
        self.laptop.road.app.advance(60);
        let agent = Agent::open(&self.laptop.folder())?;
        once(&Loop {
            agent: &agent,
            door: &self.laptop.road,
            home: &self.laptop.home,
            clock: &*self.laptop.clock,
            entropy: &SystemEntropy,
            say: &|_| {},
            stations: &[&self.configuration],
            stop: Arc::default(),
        })
        .await
    }

    async fn goes_on(&self) {
        assert_eq!(self.round().await.unwrap().problem, None);
    }

    /// A round in which something is in the way, and what.
    async fn stumbles(&self) -> String {
        let problem = self.round().await.unwrap().problem;
        problem.unwrap().line
    }

    /// Has somebody on the way answer instead of the server, until it is silenced.
    fn hears(&self, end: &str, status: u16, body: &[u8]) {
        let mut says = self.laptop.road.says.borrow_mut();
        says.insert(end.to_owned(), (status, body.to_vec()));
    }

    fn silence(&self) {
        self.laptop.road.says.borrow_mut().clear();
    }

    /// What the server answered last where the path ends so.
    fn heard(&self, end: &str) -> Vec<u8> {
        self.laptop.road.heard.borrow()[end].clone()
    }

    /// How often something was asked whose path ends so.
    fn asked(&self, end: &str) -> usize {
        let sent = self.laptop.road.sent.borrow();
        sent.iter().filter(|(path, _)| path == end).count()
    }
}

async fn assign(app: &App, path: &str, desk: &Desk) {
    let path = format!("{path}/devices/{}", desk.id);
    app.write("PUT", &path, json!({})).await.ok();
}

async fn unassign(app: &App, path: &str, desk: &Desk) {
    let path = format!("{path}/devices/{}", desk.id);
    app.delete(&path).await.ok();
}

async fn target(app: &App, path: &str) -> Value {
    let page = app.get(&format!("{path}/targets")).await.ok().clone();
    page["targets"][0].clone()
}

fn denies(what: &str) -> Value {
    json!({ "permissions": { "deny": [what] } })
}

/// Proves MP-1, MP-2, MP-4.
#[test]
fn a_machine_has_the_settings_that_it_is_assigned_and_keeps_them() {
    each("agent_settings", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let path = profile(&app, "claude_code").await;
        publish(&app, &path, denies("Read(./.env)")).await;
        desk.goes_on().await;
        assert!(!desk.file().exists());
        assign(&app, &path, &desk).await;
        desk.goes_on().await;
        assert!(desk.holds().contains("Read(./.env)"));
        assert_eq!(
            desk.file().metadata().unwrap().permissions().mode() & 0o777,
            0o644
        );
        let seen = target(&app, &path).await;
        assert_eq!(
            (&seen["targetId"], &seen["state"]),
            (&json!(desk.id), &json!("verified"))
        );

        // Nothing new: one question in a round, and the release is fetched and reported when its interval is over.
        let (asked, reported) = (desk.asked("profiles"), desk.asked("reports"));
        desk.goes_on().await;
        assert_eq!(
            (desk.asked("profiles"), desk.asked("reports")),
            (asked + 1, reported)
        );
        app.advance(3_600);
        desk.goes_on().await;
        assert_eq!(desk.asked("reports"), reported + 1);

        // A new release, and what somebody wrote here.
        publish(&app, &path, denies("WebFetch")).await;
        desk.goes_on().await;
        assert!(desk.holds().contains("WebFetch"));
        fs::write(desk.file(), "{}").unwrap();
        desk.goes_on().await;
        assert!(desk.holds().contains("WebFetch"));
        assert_eq!(
            target(&app, &path).await["message"],
            "healed: the file was written again"
        );
        // Without its server it holds what it held, also where somebody wrote then.
        fs::write(desk.file(), "{}").unwrap();
        desk.laptop.road.loses.set(Some("heartbeat"));
        desk.round().await.unwrap_err();
        assert!(desk.holds().contains("WebFetch"));

        // Another profile takes its place when people say so, and what is assigned no longer stays as it is.
        unassign(&app, &path, &desk).await;
        desk.goes_on().await;
        fs::write(desk.file(), "{}").unwrap();
        desk.goes_on().await;
        desk.laptop.road.loses.set(Some("heartbeat"));
        desk.round().await.unwrap_err();
        assert_eq!(desk.holds(), "{}");
        let other = profile(&app, "claude_code").await;
        publish(&app, &other, denies("Bash")).await;
        assign(&app, &other, &desk).await;
        desk.goes_on().await;
        assert!(desk.holds().contains("Bash"));
        app.kernel.stop().await;
    });
}

/// Proves MP-3, MP-4.
#[test]
fn no_file_of_somebody_else_and_no_folder_of_others_is_written() {
    each("agent_foreign_settings", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let path = profile(&app, "claude_code").await;
        publish(&app, &path, denies("Bash")).await;
        assign(&app, &path, &desk).await;
        // A file that stands there already.
        fs::write(desk.file(), "{\"own\": 1}").unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("was not written by this agent"), "{why}");
        assert_eq!(desk.holds(), "{\"own\": 1}");
        let seen = target(&app, &path).await;
        assert_eq!(seen["state"], "failed");
        assert!(
            seen["message"]
                .as_str()
                .unwrap()
                .contains("was not written by this agent")
        );
        // The log says it at each round, the server once for each interval.
        let reported = desk.asked("reports");
        desk.stumbles().await;
        assert_eq!(desk.asked("reports"), reported);
        fs::remove_file(desk.file()).unwrap();
        // A folder that others can change, one that is a link, and none.
        let folder = desk.file().parent().unwrap().to_owned();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("root alone can change"), "{why}");
        assert!(!desk.file().exists());
        fs::remove_dir(&folder).unwrap();
        let elsewhere = desk.laptop.home.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &folder).unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("root alone can change"), "{why}");
        fs::remove_file(&folder).unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("mkdir"), "{why}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        // A link in the place of the file is nobody's file: it is not followed.
        fs::create_dir(&folder).unwrap();
        symlink(elsewhere.join("target"), desk.file()).unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("was not written by this agent"), "{why}");
        fs::remove_file(desk.file()).unwrap();
        desk.goes_on().await;
        assert!(desk.holds().contains("Bash"));
        app.kernel.stop().await;
    });
}

/// Proves DC-2, MP-1.
#[test]
fn what_is_withheld_leaves_the_file_and_an_agent_of_one_person_writes_none() {
    each("agent_withheld", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let path = profile(&app, "claude_code").await;
        publish(&app, &path, denies("Bash")).await;
        assign(&app, &path, &desk).await;
        desk.goes_on().await;
        publish(&app, &path, json!({ "env": { "API_KEY": "canary-4711" } })).await;
        let why = desk.stumbles().await;
        assert!(why.contains("hidden_values"), "{why}");
        assert!(desk.holds().contains("Bash"));
        fs::write(desk.file(), "{}").unwrap();
        desk.stumbles().await;
        assert!(desk.holds().contains("Bash"));
        assert_eq!(target(&app, &path).await["state"], "failed");

        let own = Desk::new(&app, Mode::User).await;
        assign(&app, &path, &own).await;
        publish(&app, &path, denies("Edit")).await;
        let why = own.stumbles().await;
        assert!(why.contains("--system"), "{why}");
        assert!(!own.file().exists());
        app.kernel.stop().await;
    });
}

fn id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Proves MP-2.
#[test]
fn another_profile_in_between_brings_no_earlier_release_back() {
    each("agent_downgrade", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let (one, other) = (
            profile(&app, "claude_code").await,
            profile(&app, "claude_code").await,
        );
        publish(&app, &one, denies("First")).await;
        publish(&app, &other, denies("Other")).await;
        assign(&app, &one, &desk).await;
        desk.goes_on().await;
        let first = desk.heard(id_of(&one));
        publish(&app, &one, denies("Second")).await;
        desk.goes_on().await;
        unassign(&app, &one, &desk).await;
        assign(&app, &other, &desk).await;
        desk.goes_on().await;
        assert!(desk.holds().contains("Other"));
        // Signed it was, and by the right key.
        unassign(&app, &other, &desk).await;
        assign(&app, &one, &desk).await;
        desk.hears(id_of(&one), 200, &first);
        let why = desk.stumbles().await;
        assert!(why.contains("older than the applied version"), "{why}");
        assert!(desk.holds().contains("Other"));
        desk.silence();
        desk.goes_on().await;
        assert!(desk.holds().contains("Second"));
        // Two profiles for one program are a fault of the server's.
        let mut list: Value = serde_json::from_slice(&desk.heard("profiles")).unwrap();
        let twice = list["profiles"][0].clone();
        list["profiles"].as_array_mut().unwrap().push(twice);
        desk.hears("profiles", 200, list.to_string().as_bytes());
        fs::write(desk.file(), "{}").unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("two profiles"), "{why}");
        assert!(desk.holds().contains("Second"));
        app.kernel.stop().await;
    });
}

/// Proves MP-1, MP-4.
#[test]
fn a_release_for_another_program_is_refused_whatever_the_server_calls_it() {
    each("agent_target", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let path = profile(&app, "codex").await;
        publish(&app, &path, json!({ "allowed_sandbox_modes": ["read-only"] })).await;
        assign(&app, &path, &desk).await;
        // There is no folder for it yet.
        let why = desk.stumbles().await;
        assert!(why.contains("mkdir"), "{why}");
        let list = String::from_utf8(desk.heard("profiles")).unwrap();
        let list = list.replace("\"codex\"", "\"claude_code\"");
        desk.hears("profiles", 200, list.as_bytes());
        let why = desk.stumbles().await;
        assert!(why.contains("signed for codex"), "{why}");
        assert!(!desk.file().exists());
        assert_eq!(target(&app, &path).await["state"], "failed");
        app.kernel.stop().await;
    });
}

/// Proves MP-3.
#[test]
fn whatever_stands_in_the_way_of_the_list_or_of_the_folder_the_file_is_kept() {
    each("agent_no_list", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let path = profile(&app, "claude_code").await;
        publish(&app, &path, denies("Bash")).await;
        assign(&app, &path, &desk).await;
        // Everybody may open the folder, and nobody stops a release by that.
        let folder = fs::File::open(desk.file().parent().unwrap()).unwrap();
        folder.try_lock().unwrap();
        desk.goes_on().await;
        assert!(desk.holds().contains("Bash"));
        let refusal = r#"{"code": "unavailable", "message": "not now"}"#;
        let answers = [
            (404, refusal),
            (503, refusal),
            (401, refusal),
            (200, "{}"),
            (200, "["),
        ];
        for (status, body) in answers {
            desk.hears("profiles", status, body.as_bytes());
            fs::write(desk.file(), "{}").unwrap();
            let done = desk.round().await.unwrap();
            assert_eq!(
                done.problem.is_none(),
                status == 404,
                "{status} {:?}",
                done.problem
            );
            assert!(desk.holds().contains("Bash"), "{status}");
        }
        desk.silence();
        // An offer that nobody can read keeps no other one from being applied.
        publish(&app, &path, denies("Edit")).await;
        desk.goes_on().await;
        publish(&app, &path, denies("Write")).await;
        let mut list: Value = serde_json::from_slice(&desk.heard("profiles")).unwrap();
        list["profiles"][0]["revision"] = json!("another");
        let odd = json!({ "profileId": "../x", "of": "tomorrow" });
        list["profiles"].as_array_mut().unwrap().push(odd);
        desk.hears("profiles", 200, list.to_string().as_bytes());
        let why = desk.stumbles().await;
        assert!(why.contains("cannot be read"), "{why}");
        assert!(desk.holds().contains("Write"));
        app.kernel.stop().await;
    });
}

/// Proves MP-3.
#[test]
fn whatever_stands_in_the_way_of_a_release_the_file_is_put_back() {
    each("agent_heals", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let path = profile(&app, "claude_code").await;
        publish(&app, &path, denies("Bash")).await;
        assign(&app, &path, &desk).await;
        desk.goes_on().await;
        desk.goes_on().await;
        let folder = desk.laptop.home.join("state");
        // How far the profile had come cannot be read: no release may follow, and the one that was applied stays.
        fs::write(folder.join("releases.json"), "x").unwrap();
        fs::write(desk.file(), "{}").unwrap();
        let why = desk.stumbles().await;
        assert!(why.contains("releases.json"), "{why}");
        assert!(desk.holds().contains("Bash"));
        fs::remove_file(folder.join("releases.json")).unwrap();
        desk.goes_on().await;
        // Nor can what was done for the server.
        let _ = fs::remove_file(folder.join("commands.json"));
        fs::create_dir(folder.join("commands.json")).unwrap();
        fs::write(desk.file(), "{}").unwrap();
        desk.stumbles().await;
        assert!(desk.holds().contains("Bash"));
        fs::remove_dir(folder.join("commands.json")).unwrap();
        desk.goes_on().await;
        // The offer of this very profile cannot be read, and then not even whose it is; both also when no server answers afterwards.
        let list: Value = serde_json::from_slice(&desk.heard("profiles")).unwrap();
        let mut odd = list.clone();
        odd["profiles"][0]["pollIntervalSeconds"] = json!("x");
        let mut nameless = list.clone();
        nameless["profiles"][0]["profileId"] = json!(7);
        for list in [odd, nameless] {
            desk.hears("profiles", 200, list.to_string().as_bytes());
            fs::write(desk.file(), "{}").unwrap();
            let why = desk.stumbles().await;
            assert!(why.contains("cannot be read"), "{why}");
            assert!(desk.holds().contains("Bash"));
            fs::write(desk.file(), "{}").unwrap();
            desk.laptop.road.loses.set(Some("heartbeat"));
            desk.round().await.unwrap_err();
            assert!(desk.holds().contains("Bash"));
            desk.silence();
        }
        app.kernel.stop().await;
    });
}

/// Proves MP-4.
#[test]
fn what_is_assigned_no_longer_does_not_come_back() {
    each("agent_former", |app: Arc<App>| async move {
        let desk = Desk::new(&app, Mode::System).await;
        let (one, other) = (
            profile(&app, "claude_code").await,
            profile(&app, "claude_code").await,
        );
        publish(&app, &one, denies("Bash")).await;
        publish(&app, &other, json!({ "env": { "API_KEY": "canary-4711" } })).await;
        assign(&app, &one, &desk).await;
        desk.goes_on().await;
        unassign(&app, &one, &desk).await;
        fs::write(desk.file(), "{\"own\": 1}").unwrap();
        assign(&app, &other, &desk).await;
        let why = desk.stumbles().await;
        assert!(why.contains("hidden_values"), "{why}");
        desk.laptop.road.loses.set(Some("heartbeat"));
        desk.round().await.unwrap_err();
        assert_eq!(desk.holds(), "{\"own\": 1}");
        app.kernel.stop().await;
    });
}

//! What nobody may read is planted wherever a machine can hold it, the real agent and the real hook work there before a real server, and all
//! that anybody can read afterwards is searched.
//!
//! ```text
//!   a home of eleven clients ──► agent, hook ──► what they keep and what they say
//!                                     │ every request is written down on its way
//!                                     ▼
//!                                  server ──► its log, its tables, its files, every answer to an administrator
//! ```
//!
//! Where something may stand is written in [`KINDS`]; it stands nowhere else, and nothing is on the list in which it does not stand.

#[path = "canaries/found.rs"]
mod found;
#[path = "canaries/garden.rs"]
mod garden;
#[path = "canaries/wire.rs"]
mod wire;

use crate::harness::{Home, Server, bare, get, homes, patch, post};
use found::Found;
use garden::Garden;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use wire::Wire;

/// Pages of a list that are read.
const MOST_PAGES: usize = 20;

const BASE: &str = "/api/headless/v1/organizations/default";
const ADA: &str = "ada@acme.test";
/// Far beyond anything that works.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many are planted at least.
const PLANTED: usize = 10_000;
/// What projects are called whose names may be shown.
pub const PROJECT: &str = "cnryp-orchard";

/// How far the machine has come; what a later step lets out is nowhere before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    /// It was enrolled, scanned, and asks; nobody judges there.
    Works,
    /// It judges, and of what passes without a reason it tells how often.
    Counts,
    /// It tells every event that it judges, and what it judged waits.
    Waits,
    /// What waited was told.
    Tells,
    /// It was enrolled anew, where names of projects are shown.
    Shows,
}

/// What is planted, by how it begins, and the only places that hold it: each from a step on, and up to one.
struct Kind {
    begins: &'static str,
    what: &'static str,
    places: &'static [(Step, Step, &'static str)],
    /// Places that hold it where it was the last of its kind that was sent.
    perhaps: &'static [&'static str],
}

const fn nowhere(begins: &'static str, what: &'static str) -> Kind {
    Kind {
        begins,
        what,
        places: &[],
        perhaps: &[],
    }
}

/// The names of places: `agent/` is the agent's own folder and `registered/` that of its hook; `said/` what commands print, on both of their ways
/// out; `head/` and `body/` what the machine asks the server; `server/` what that prints; `store/` its tables; `api/` what it answers to an
/// administrator. The files of the store (`raw/`) hold what its tables hold.
const KINDS: [Kind; 11] = [
    nowhere(
        "CnryV",
        "values of variables, headers, arguments, addresses and credentials that are configured",
    ),
    nowhere(
        "CnryT",
        "prompts in files of conversations, histories, instructions and skills",
    ),
    nowhere("CnryN", "names and addresses of people in files of clients"),
    nowhere(
        "CnryF",
        "names of folders that look like no word, and all that is above a project",
    ),
    nowhere("CnryE", "values of the variables of the agent's own surroundings"),
    nowhere(
        "CnryS",
        "where a client says that it keeps a conversation, and what else it says that no policy judges",
    ),
    nowhere(
        "CnryC",
        "prompts and arguments of calls that pass while the settings have them counted",
    ),
    Kind {
        begins: PROJECT,
        what: "names of the folders of projects, where the settings show them",
        places: &[
            (Step::Shows, Step::Shows, "api/devices/{deviceId}/inventory"),
            (Step::Shows, Step::Shows, "body/devices/*/scans"),
            (Step::Shows, Step::Shows, "said/agent explain -o json"),
            (Step::Shows, Step::Shows, "store/inventory_observations"),
        ],
        perhaps: &[
            "said/agent explain",
            "agent/sent/*.report",
            "agent/queue/*",
            "said/agent scan --print",
        ],
    },
    Kind {
        begins: "CnryA",
        what: "prompts, arguments and results about which the hook asks the server, because no agent judges",
        places: &[
            (Step::Works, Step::Shows, "api/policies/history/{eventId}"),
            (Step::Works, Step::Shows, "body/policies/decisions"),
            (Step::Works, Step::Shows, "store/history_chunks"),
        ],
        perhaps: &[],
    },
    Kind {
        begins: "CnryW",
        what: "the folder of a call, which goes to the server where it is asked, and is kept by nobody",
        places: &[(Step::Works, Step::Shows, "body/policies/decisions")],
        perhaps: &[],
    },
    Kind {
        begins: "CnryJ",
        what: "prompts, arguments and results that the agent judged, where it tells every event and the settings have it tell contents",
        places: &[
            (Step::Waits, Step::Waits, "agent/decisions/*"),
            (Step::Waits, Step::Shows, "said/agent explain"),
            (Step::Waits, Step::Shows, "said/agent explain -o json"),
            (Step::Tells, Step::Shows, "api/policies/history/{eventId}"),
            (Step::Tells, Step::Shows, "body/devices/*/decisions"),
            (Step::Tells, Step::Shows, "store/history_chunks"),
        ],
        perhaps: &["agent/sent/decisions.json"],
    },
];

/// An agent that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A person's machine, with the server of the organization at the other end of a wire.
struct Machine<'a> {
    home: &'a Home,
    /// The person's home.
    dir: PathBuf,
    wire: Wire,
    server: Server,
    admin: String,
    id: String,
    surroundings: BTreeMap<&'static str, String>,
    /// What was printed, by command.
    said: Found,
    /// Texts that open something, and the only places of each.
    tokens: Vec<(&'static str, String, &'static [&'static str])>,
}

impl<'a> Machine<'a> {
    /// Returns one that is enrolled as Ada's, with a hook.
    fn new(home: &'a Home, garden: &mut Garden) -> Self {
        let wire = Wire::listens();
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        command
            .env("PROVOST_LOG", "debug")
            .env("PROVOST_RATE_LIMITS_ENABLED", "false")
            .env("PROVOST_HTTP_PUBLIC_URL", wire.url());
        let server = Server::start(command, &home.path("stdout"));
        wire.leads_to(server.port);
        let admin = server.token();
        let dir = home.path("ada");
        garden.home(&dir);
        let mut machine = Self {
            home,
            dir,
            wire,
            server,
            tokens: vec![("the administrator's token", admin.clone(), &["raw/first-token"])],
            admin,
            id: String::new(),
            surroundings: garden.surroundings(),
            said: Found::default(),
        };
        machine.enrols("laptop");
        machine.registers();
        machine
    }

    /// Enrols the machine, as another device where it was one.
    fn enrols(&mut self, name: &str) {
        let made = self.created(
            "devices/enrolment-tokens",
            &json!({ "name": name, "mode": "user" }),
        );
        self.keeps("enrolment.token", made["token"].as_str().unwrap());
        let url = self.wire.url();
        let mut words = vec!["agent", "enrol", "--server", &url, "--organization", "default"];
        words.extend(["--token-file", "enrolment.token"]);
        if !self.id.is_empty() {
            words.push("--anew");
        }
        let enrolled = self.says(&words);
        let enrolled: Value = serde_json::from_str(&enrolled).unwrap();
        enrolled["deviceId"].as_str().unwrap().clone_into(&mut self.id);
        let token = fs::read_to_string(self.state("token")).unwrap();
        let token = token.lines().next().unwrap().to_owned();
        self.tokens.extend([
            (
                "an enrolment token",
                made["token"].as_str().unwrap().to_owned(),
                &["head/devices/enrol"][..],
            ),
            (
                "a token of the device",
                token,
                &[
                    "agent/token",
                    "head//.well-known/provost-keys.json",
                    "head/devices/*",
                ],
            ),
        ]);
    }

    /// Installs the hook of Ada, whose machine it is, where a policy blocks `rm -rf`.
    fn registers(&mut self) {
        let asked = json!({ "name": "hooks", "permissionRole": "operator", "scopes": ["policies:decide"] });
        let hooks = self.created("service-accounts", &asked);
        let token = hooks["token"]["token"].as_str().unwrap();
        self.keeps("hook.token", token);
        let may = &["head/capabilities", "head/policies/decisions"];
        self.tokens.push(("the hook's token", token.to_owned(), may));
        let ada = self.created("directory/users", &json!({ "loginName": ADA }));
        let owner = json!({ "ownerUserId": ada["user"]["id"] });
        self.patched(&format!("devices/{}", self.id), &owner);
        let url = self.wire.url();
        let mut words = vec![
            "hook",
            "install",
            "claude-code",
            "--url",
            &url,
            "--organization",
            "default",
        ];
        words.extend(["--token-file", "hook.token", "--user", ADA]);
        self.says(&words);
        let policy = json!({ "id": "no-rm", "name": "no rm", "action": "block", "message": "ask the platform team first", "evaluateOn": ["pre_tool"],
            "acknowledgeBroadScope": true, "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -rf" } });
        self.created("content-policies", &json!({ "definition": policy }));
    }

    fn keeps(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.join(".local/state/provost-agent").join(name)
    }

    fn created(&self, what: &str, body: &Value) -> Value {
        let (status, answer) = post(
            self.server.port,
            &format!("{BASE}/{what}"),
            &self.admin,
            &body.to_string(),
        );
        assert!((200..300).contains(&status), "{what}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn patched(&self, what: &str, body: &Value) {
        let (status, answer) = patch(
            self.server.port,
            &format!("{BASE}/{what}"),
            &self.admin,
            &body.to_string(),
        );
        assert_eq!(status, 200, "{what}: {answer}");
    }

    fn settings(&self, fleet: &Value) {
        self.patched("automation/settings", &json!({ "fleet": fleet, "confirm": true }));
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(words);
        command
            .envs(&self.surroundings)
            .env("HOME", &self.dir)
            .env("PATH", "/usr/bin:/bin");
        command.current_dir(&self.dir);
        command
    }

    /// Runs a command, keeps what it prints, and returns its standard output; how it ends says something else.
    fn says(&mut self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let place = format!("said/{}", words.join(" "));
        self.said.add(place.clone(), &output.stdout);
        self.said.add(place, &output.stderr);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Has the agent judge from its first round on, while `work` is done, and keeps what it prints.
    fn judges(&mut self, work: impl FnOnce(&mut Self)) {
        let mut command = self.command(&["agent", "run", "--judge"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let running = Running(child);
        let (sender, heard) = channel();
        thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)));
        });
        let mut said = String::new();
        while !said.contains("next in") {
            said += &heard
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no round: {said}"));
            said.push('\n');
        }
        work(self);
        drop(running);
        said.extend(heard.iter().map(|line| line + "\n"));
        self.said.add("said/agent run --judge", said);
    }

    /// Returns what Claude Code hears of one of its events.
    fn hook(&mut self, event: &Value) -> String {
        let mut child = self
            .command(&["hook", "run", "claude-code", "--mode", "enforce"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(event.to_string().as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        self.said.add("said/hook run claude-code", &said);
        String::from_utf8(said).unwrap()
    }

    /// A prompt, a call that passes and its result, and a call that is blocked where `blocks` says so; canaries of a kind stand in all of them.
    fn calls(&mut self, garden: &mut Garden, kind: char, blocks: bool) {
        let folder = self.dir.join(garden.one('W')).display().to_string();
        let kept = format!("/home/ada/.claude/projects/{}/1.jsonl", garden.one('S'));
        let event = |name: &str, more: Value| {
            let mut event = json!({ "session_id": "s-1", "cwd": folder, "transcript_path": kept, "hook_event_name": name, "permission_mode": "default" });
            event
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            event
        };
        let note = garden.one('S');
        let prompt = event(
            "UserPromptSubmit",
            json!({ "prompt": format!("look at {}", garden.one(kind)), "note": note }),
        );
        let input = json!({ "command": format!("ls {}", garden.one(kind)), "description": garden.one(kind) });
        let call = event(
            "PreToolUse",
            json!({ "tool_name": "Bash", "tool_use_id": "c-1", "tool_input": input }),
        );
        let result = json!({ "stdout": garden.one(kind), "stderr": "", "interrupted": false });
        let result = event(
            "PostToolUse",
            json!({ "tool_name": "Bash", "tool_use_id": "c-1", "tool_input": input, "tool_response": result }),
        );
        for event in [prompt, call, result] {
            let said = self.hook(&event);
            assert!(!said.contains("deny") && !said.contains("\"block\""), "{said}");
        }
        if blocks {
            let input = json!({ "command": format!("rm -rf {}", garden.one(kind)) });
            let call = event(
                "PreToolUse",
                json!({ "tool_name": "Bash", "tool_use_id": "c-2", "tool_input": input }),
            );
            let said = self.hook(&call);
            assert!(said.contains("deny"), "{said}");
        }
    }

    /// Lets the commands print that say something of the machine.
    fn shows(&mut self) {
        for words in [
            "status",
            "status --json",
            "doctor",
            "doctor -o json",
            "explain",
            "explain -o json",
            "scan --print",
        ] {
            let words: Vec<&str> = ["agent"].into_iter().chain(words.split(' ')).collect();
            self.says(&words);
        }
        self.says(&["hook", "doctor"]);
    }

    /// Returns all that somebody could read now.
    fn found(&mut self) -> Found {
        let mut found = Found(self.said.0.clone());
        found.0.extend(self.wire.said());
        found.files(
            &self.dir.join(".local/state/provost-agent"),
            &|file| match file.split_once('/') {
                Some(("sent", name)) if name.ends_with(".report") => "agent/sent/*.report".to_owned(),
                Some((folder @ ("decisions" | "queue"), _)) => format!("agent/{folder}/*"),
                _ => format!("agent/{file}"),
            },
        );
        found.files(&self.dir.join(".config/provost"), &|file| {
            format!("registered/{file}")
        });
        found.files(&self.home.path("data"), &|file| format!("raw/{file}"));
        found.add("server/log", self.server.log_so_far());
        found.add("server/stdout", fs::read(self.home.path("stdout")).unwrap());
        found.tables(self.home);
        for path in readable() {
            let concrete = path
                .replace("{organizationId}", "default")
                .replace("{deviceId}", &self.id);
            let (_, mut all) = get(self.server.port, &concrete, Some(&self.admin));
            let mut asked = format!("{concrete}?limit=100");
            for _ in 0..MOST_PAGES {
                let (_, answer) = get(self.server.port, &asked, Some(&self.admin));
                let next = serde_json::from_str::<Value>(&answer).ok();
                let next = next.and_then(|page| page["nextCursor"].as_str().map(str::to_owned));
                all += &answer;
                let Some(cursor) = next else { break };
                asked = format!("{concrete}?limit=100&cursor={cursor}");
            }
            let below = path
                .split_once("{organizationId}/")
                .map_or(path.as_str(), |(_, below)| below);
            found.add(format!("api/{below}"), all);
        }
        let asked = format!("{BASE}/policies/history");
        let (_, page) = get(self.server.port, &format!("{asked}?limit=100"), Some(&self.admin));
        let page: Value = serde_json::from_str(&page).unwrap();
        for event in page["events"].as_array().unwrap() {
            let id = event["eventId"].as_str().unwrap();
            let (status, answer) = get(self.server.port, &format!("{asked}/{id}"), Some(&self.admin));
            assert_eq!(status, 200, "{answer}");
            found.add("api/policies/history/{eventId}", answer);
        }
        found
    }

    /// Fails where something of what was planted stands where it may not, or does not stand where it is said to.
    fn is_searched(&mut self, garden: &Garden, step: Step) {
        let found = self.found();
        let must = [
            "agent/device.json",
            "agent/state.json",
            "body/devices/*/heartbeat",
            "body/devices/*/coverage",
            "body/devices/*/scans",
            "server/log",
            "store/audit_entries",
            "store/inventory_observations",
            "registered/hook.toml",
            "api/audit/events",
        ];
        for place in must {
            assert!(
                found.0.get(place).is_some_and(|bytes| bytes.len() > 40),
                "{place} of {:?}",
                found.0.keys()
            );
        }
        let readable = found.read();
        let mut wrong = Vec::new();
        for kind in &KINDS {
            let now = kind
                .places
                .iter()
                .filter(|(from, to, _)| (*from..=*to).contains(&step));
            let allowed: BTreeSet<&str> = now.map(|(_, _, place)| *place).collect();
            let places = readable.places_of(kind.begins);
            let may = |place: &&&str| {
                let is_kept = allowed.iter().any(|place| place.starts_with("store/"));
                kind.perhaps.contains(*place) && !allowed.is_empty() || place.starts_with("raw/") && is_kept
            };
            let out: Vec<_> = places.difference(&allowed).filter(|place| !may(place)).collect();
            if !out.is_empty() {
                wrong.push(format!("{} ({}) stands in {out:?}", kind.begins, kind.what));
            }
            let not: Vec<_> = allowed.difference(&places).collect();
            if !not.is_empty() {
                wrong.push(format!(
                    "{} ({}) is said to stand in {not:?}",
                    kind.begins, kind.what
                ));
            }
        }
        for (what, token, allowed) in &self.tokens {
            let may = |place: &str| allowed.iter().any(|begins| place.starts_with(begins));
            let out: Vec<_> = readable
                .places_of(token)
                .into_iter()
                .filter(|place| !may(place))
                .collect();
            if !out.is_empty() {
                wrong.push(format!("{what} stands in {out:?}"));
            }
        }
        let digests = found.digests_of(&garden.0);
        assert!(
            wrong.is_empty() && digests.is_empty(),
            "{step:?}:\n{}\n{digests:?}",
            wrong.join("\n")
        );
    }
}

/// Returns every path that is read and of which nobody has to say more than whose machine it is.
fn readable() -> Vec<String> {
    let document: Value = serde_json::from_str(include_str!("../../../../openapi/headless-v1.json")).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let is_plain = |path: &str| {
        path.matches('{').count()
            == usize::from(path.contains("{organizationId}")) + usize::from(path.contains("{deviceId}"))
    };
    let read = paths
        .iter()
        .filter(|(path, operations)| operations["get"].is_object() && is_plain(path));
    let all: Vec<String> = read.map(|(path, _)| path.clone()).collect();
    assert!(all.len() > 40, "{}", all.len());
    all
}

/// Says which clients a report has something of.
fn clients(report: &str) -> BTreeSet<String> {
    let report: Value = serde_json::from_str(report).unwrap();
    let sections = report["sections"].as_array().unwrap().iter();
    let full = sections.filter(|section| {
        section["observations"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    });
    full.map(|section| section["client"].as_str().unwrap().to_owned())
        .collect()
}

/// Proves IN-7, IN-11.
#[test]
fn of_all_that_is_planted_on_a_machine_nothing_stands_where_it_does_not_belong() {
    for home in homes("canaries") {
        let mut garden = Garden::default();
        let mut machine = Machine::new(&home, &mut garden);
        assert!(garden.0.len() > PLANTED, "{}", garden.0.len());

        // It works and judges nothing: the hook asks the server.
        let before = machine.says(&["agent", "scan", "--print"]);
        assert_eq!(clients(&before).len(), 11, "{before}");
        machine.says(&["agent", "run", "--once"]);
        machine.says(&["agent", "scan"]);
        machine.calls(&mut garden, 'A', false);
        machine.shows();
        machine.is_searched(&garden, Step::Works);

        // It judges; what passes is counted.
        machine.settings(&json!({ "hooks": { "judging": "on", "mode": "enforce", "record": "counted" } }));
        machine.judges(|machine| {
            machine.calls(&mut garden, 'C', false);
            machine.shows();
        });
        machine.judges(Machine::shows);
        machine.is_searched(&garden, Step::Counts);

        // It judges and tells every event, with its contents.
        let full = json!({ "prompts": "full", "toolArguments": "full" });
        machine.settings(&json!({ "hooks": { "record": "all" }, "privacy": full }));
        machine.judges(|machine| machine.calls(&mut garden, 'J', true));
        machine.shows();
        machine.is_searched(&garden, Step::Waits);
        machine.judges(Machine::shows);
        machine.shows();
        machine.is_searched(&garden, Step::Tells);

        // Names of projects are shown: the first heartbeat of a device hears so.
        machine.settings(&json!({ "privacy": { "projectNames": "show" } }));
        machine.enrols("laptop again");
        machine.says(&["agent", "run", "--once"]);
        machine.shows();
        machine.is_searched(&garden, Step::Shows);
        assert_eq!(machine.server.stop(), 0);
    }
}

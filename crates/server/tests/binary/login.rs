//! `provost login` with a browser, from the words on the terminal to the end of the session, at a real OpenID provider.
//!
//! The browser is played: it keeps cookies, follows redirects and sends the one form.

use super::harness::{Home, Server, bare, homes_once};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where the provider is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A running provider, which ends with this value.
struct Provider(Child);

impl Provider {
    /// Starts it for a server; returns it and its issuer.
    fn start(url: &str) -> Option<(Self, String)> {
        let Some(folder) = variable("PROVOST_TEST_OIDC_PROVIDER") else {
            assert!(
                variable("PROVOST_TEST_REQUIRE_OIDC").as_deref() != Some("1"),
                "PROVOST_TEST_OIDC_PROVIDER is not set, and PROVOST_TEST_REQUIRE_OIDC is"
            );
            return None;
        };
        let mut child = Command::new("node")
            .args(["serve.mjs", &format!("{url}/oauth/callback")])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut issuer = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut issuer).unwrap();
        Some((Self(child), issuer.trim().to_owned()))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// A browser with its cookies, by host and port.
#[derive(Default)]
struct Browser(BTreeMap<String, BTreeMap<String, String>>);

struct Page {
    status: u16,
    location: Option<String>,
    body: String,
}

impl Browser {
    fn ask(&mut self, method: &str, url: &str, form: Option<&str>) -> Page {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let cookies = self.0.entry(host.to_owned()).or_default();
        let pairs: Vec<String> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let form = form.unwrap_or_default();
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\nsec-fetch-site: same-origin\r\nconnection: close\r\n\r\n{form}",
            pairs.join("; "),
            form.len()
        );
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // What came before the end of the connection counts, however it ends.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut location = None;
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(": ").unwrap();
            match name.to_ascii_lowercase().as_str() {
                "location" if value.starts_with('/') => location = Some(format!("http://{host}{value}")),
                "location" => location = Some(value.to_owned()),
                "set-cookie" => {
                    let (name, value) = value.split(';').next().unwrap().split_once('=').unwrap();
                    cookies.insert(name.to_owned(), value.to_owned());
                }
                _ => {}
            }
        }
        Page {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            location,
            body: body.to_owned(),
        }
    }

    /// Follows redirects to a page.
    fn open(&mut self, url: &str) -> Page {
        let mut url = url.to_owned();
        for _ in 0..12 {
            let page = self.ask("GET", &url, None);
            match page.location {
                Some(next) => url = next,
                None => return page,
            }
        }
        panic!("it leads nowhere: {url}");
    }

    /// Answers the page of consent; returns what the command line's page says.
    fn decide(&mut self, server: &str, page: &Page, decision: &str) -> Page {
        let value = |tag: &str, name: &str| {
            let (_, rest) = tag.split_once(&format!(" {name}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let fields = page.body.split("<input").skip(1);
        let mut form: Vec<String> = fields
            .map(|tag| format!("{}={}", value(tag, "name"), value(tag, "value").replace(' ', "+")))
            .collect();
        form.push(format!("decision={decision}"));
        let answered = self.ask("POST", &format!("{server}/oauth/consent"), Some(&form.join("&")));
        self.open(&answered.location.unwrap_or_else(|| panic!("{}", answered.body)))
    }
}

/// A server at which people sign in, and a person's home folder.
struct Stage {
    home: Home,
    server: Server,
    url: String,
    admin: String,
    _provider: Provider,
}

fn stage(home: Home) -> Option<Stage> {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let (provider, issuer) = Provider::start(&url)?;
    let secret = home.path("secret");
    std::fs::write(&secret, "a secret / with + signs: and more").unwrap();
    let config = home.path("provost.toml");
    let text = format!(
        "[http]\npublic_url = {url:?}\n[[oauth.sign_in]]\nname = \"Acme\"\nissuer = {issuer:?}\nclient_id = \"provost-es256\"\n\
         client_secret_file = \"{}\"\norganizations = [\"acme\"]\nauthoritative_for = \"default\"\n",
        secret.display()
    );
    std::fs::write(&config, text).unwrap();
    let admin = home.init();
    let mut serve = home.command(&[
        "serve",
        "--config",
        config.to_str().unwrap(),
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--metrics-listen",
        "off",
    ]);
    serve.env("PROVOST_RATE_LIMITS_ENABLED", "false");
    let server = Server::start(serve, &home.path("stdout"));
    std::fs::create_dir(home.path("person")).unwrap();
    let stage = Stage {
        home,
        server,
        url,
        admin,
        _provider: provider,
    };
    for (name, role) in [("ada", "operator"), ("bob", "viewer")] {
        let login = format!("{name}@acme.example");
        stage.does_as_admin(&[
            "users",
            "create",
            "--login-name",
            &login,
            "--permission-role",
            role,
            "--reason",
            "r",
        ]);
    }
    Some(stage)
}

impl Stage {
    /// Returns the client of the person, without a token in its surroundings.
    fn person(&self, words: &[&str]) -> Command {
        let mut command = bare(words);
        command.env("HOME", self.home.path("person"));
        command
    }

    fn does_as_admin(&self, words: &[&str]) -> String {
        let mut command = bare(words);
        command.args(["--url", &self.url, "--organization", "acme"]);
        command.env("PROVOST_TOKEN", &self.admin);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn profiles(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn file(&self) -> std::path::PathBuf {
        self.home.path("person/.config/provost/profiles.toml")
    }

    /// Types `provost login`, has a browser do what it asks, and returns how it ended.
    fn login(&self, words: &[&str], play: impl FnOnce(&str)) -> Output {
        let login = ["login", "--no-browser", "--url", &self.url];
        self.signs_in(&[&login, words].concat(), play)
    }

    /// Types `provost agent enrol --sign-in`, and has a person allow what it asks.
    fn enrols(&self, person: &str, decision: &str) -> Output {
        let enrol = ["agent", "enrol", "--sign-in", "--no-browser", "-o", "json"];
        let words = [&enrol[..], &["--server", &self.url, "--name", "laptop"]].concat();
        self.signs_in(&words, |address| {
            let mut browser = Browser::default();
            let page = browser.open(&format!("{address}&login_hint={person}"));
            assert!(page.body.contains("enrol more"), "{}", page.body);
            browser.decide(&self.url, &page, decision);
        })
    }

    /// Types a command, has a browser do what it asks, and returns how it ended.
    fn signs_in(&self, words: &[&str], play: impl FnOnce(&str)) -> Output {
        let mut child = self
            .person(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = loop {
            let Some(line) = lines.next() else {
                panic!("it ended without an address: {said}");
            };
            let line = line.unwrap();
            said.push_str(&(line.clone() + "\n"));
            if line.starts_with("http://") {
                break line;
            }
        };
        play(&address);
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        said.push_str(&rest.join("\n"));
        let mut output = child.wait_with_output().unwrap();
        output.stderr = said.into_bytes();
        output
    }

    /// Makes the access token of the profile one that is about to end.
    fn age(&self) {
        let old = self.profiles();
        let lines = old.lines().map(|line| {
            if line.starts_with("token_expires_at") {
                "token_expires_at = \"2026-01-01T00:00:00.000Z\""
            } else {
                line
            }
        });
        let new = lines.collect::<Vec<_>>().join("\n") + "\n";
        assert_ne!(old, new);
        std::fs::write(self.file(), new).unwrap();
    }
}

fn member<'a>(profiles: &'a str, name: &str) -> &'a str {
    let line = profiles
        .lines()
        .find(|line| line.starts_with(&format!("{name} = ")));
    line.unwrap_or_else(|| panic!("{name}: {profiles}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().mode() & 0o777
}

/// Proves CL-6, CL-8, CL-9, OC-19.
#[test]
fn a_person_signs_in_with_a_browser_and_out_again() {
    for home in homes_once("login") {
        let Some(stage) = stage(home) else { return };
        // Who denies keeps nothing, and a page of somebody else's changes nothing.
        let output = stage.login(&[], |address| {
            let mut browser = Browser::default();
            let page = browser.open(&format!("{address}&login_hint=ada"));
            assert!(page.body.contains("Provost command line"), "{}", page.body);
            let back = address.split("redirect_uri=").nth(1).unwrap().split('&').next();
            let back = back.unwrap().replace("%3A", ":").replace("%2F", "/");
            for wrong in ["", "?code=x&state=y&iss=z", "?error=access_denied&state=y&iss=z"] {
                assert_eq!(browser.ask("GET", &format!("{back}{wrong}"), None).status, 404);
            }
            let page = browser.decide(&stage.url, &page, "deny");
            assert_eq!(
                (page.status, page.body.contains("was given nothing")),
                (200, true)
            );
        });
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(!stage.file().exists(), "{}", said(&output));

        let output = stage.login(
            &["--scope", "read,policies:backtest,service_accounts:write"],
            |address| {
                let mut browser = Browser::default();
                let page = browser.open(&format!("{address}&login_hint=ada"));
                let page = browser.decide(&stage.url, &page, "allow");
                assert!(page.body.contains("has the answer"), "{}", page.body);
            },
        );
        let words = said(&output);
        assert!(output.status.success(), "{words}");
        let expected = format!(
            "signed in to {} as ada@acme.example (console user), role operator",
            stage.url
        );
        assert!(words.contains(&expected), "{words}");
        assert!(
            words.contains("policies:backtest") && !words.contains("service_accounts:write"),
            "{words}"
        );
        assert_eq!((mode(&stage.file()), output.stdout.len()), (0o600, 0));
        for secret in ["token", "refresh_token"] {
            let kept = stage.profiles();
            let kept = member(&kept, secret).split('"').nth(1).unwrap().to_owned();
            assert!(!words.contains(&kept), "{words}");
        }
        // From now on no flag is needed, and a right that was not asked for is not there.
        let whoami = stage.person(&["whoami", "-o", "json"]).output().unwrap();
        assert!(whoami.status.success(), "{}", said(&whoami));
        let whoami: Value = serde_json::from_slice(&whoami.stdout).unwrap();
        assert_eq!(
            (&whoami["signedIn"], &whoami["permissionRole"]),
            (&"browser".into(), &"operator".into())
        );
        let question = r#"{"events":[{"occasion":"prompt","attributes":{"request.prompt":"hello"}}]}"#;
        let refused = stage
            .person(&["policies", "decide", "--body", question])
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
        assert!(
            said(&refused).contains("--scope read,policies:decide"),
            "{}",
            said(&refused)
        );
        let relay = stage.person(&["mcp"]).output().unwrap();
        assert!(said(&relay).contains("not for MCP"), "{}", said(&relay));

        renew(&stage);
        end(&stage);
        let Stage { server, .. } = stage;
        assert_eq!(server.stop(), 0);
    }
}

/// Two commands renew at once: one does, the other takes what it got, and both are answered.
fn renew(stage: &Stage) {
    for _ in 0..3 {
        stage.age();
        let before = stage.profiles();
        let both: Vec<Child> = (0..4)
            .map(|_| {
                stage
                    .person(&["policies", "list", "-o", "json"])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in both {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
        }
        let after = stage.profiles();
        assert_ne!(member(&before, "refresh_token"), member(&after, "refresh_token"));
        assert_eq!(mode(&stage.file()), 0o600);
    }
    let audit = stage.does_as_admin(&["audit", "list", "--all", "-o", "json"]);
    let count = |action: &str| audit.matches(&format!("{action:?}")).count();
    assert_eq!(count("oauth.token.refreshed"), 3, "one renewal for each time");
    assert_eq!(count("oauth.token.refresh_repeated"), 0);
    // A renewal that was interrupted before it was written is answered again.
    stage.age();
    let old = stage.profiles();
    assert!(
        stage
            .person(&["policies", "list"])
            .output()
            .unwrap()
            .status
            .success()
    );
    std::fs::write(stage.file(), old).unwrap();
    let output = stage.person(&["policies", "list"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

fn end(stage: &Stage) {
    // A new sign-in ends the one before it.
    let active = || {
        let listed = stage.does_as_admin(&["mcp-sessions", "list", "--status", "active", "-o", "json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let sessions = listed["sessions"].as_array().unwrap().clone();
        assert!(
            sessions.iter().all(|one| one["mcpClientId"] == "provost-cli"),
            "{sessions:?}"
        );
        sessions.len()
    };
    assert_eq!(active(), 1);
    let old = member(&stage.profiles(), "token")
        .split('"')
        .nth(1)
        .unwrap()
        .to_owned();
    let output = stage.login(&[], |address| {
        let mut browser = Browser::default();
        let page = browser.open(&format!("{address}&login_hint=bob"));
        browser.decide(&stage.url, &page, "allow");
    });
    assert!(said(&output).contains("as bob@acme.example"), "{}", said(&output));
    assert_eq!(active(), 1);
    assert_eq!(stage.server.accounts("acme", &old).0, 401);
    // Out, at the server too.
    let kept = member(&stage.profiles(), "token")
        .split('"')
        .nth(1)
        .unwrap()
        .to_owned();
    let out = stage.person(&["logout"]).output().unwrap();
    assert!(
        out.status.success() && said(&out).contains("has ended"),
        "{}",
        said(&out)
    );
    assert_eq!(active(), 0);
    assert_eq!(stage.server.accounts("acme", &kept).0, 401);
    assert!(!stage.profiles().contains("token"), "{}", stage.profiles());
    let whoami = stage.person(&["whoami"]).output().unwrap();
    assert_eq!(whoami.status.code(), Some(3), "{}", said(&whoami));
    // An admin's word ends it as well, and the next command says what leads on.
    stage.login(&[], |address| {
        let mut browser = Browser::default();
        let page = browser.open(&format!("{address}&login_hint=ada"));
        browser.decide(&stage.url, &page, "allow");
    });
    let listed = stage.does_as_admin(&["mcp-sessions", "list", "--status", "active", "-o", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed["sessions"][0]["id"].as_str().unwrap();
    stage.does_as_admin(&["mcp-sessions", "revoke", id, "--reason", "r"]);
    for is_aged in [false, true] {
        if is_aged {
            stage.age();
        }
        let output = stage.person(&["policies", "list"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(
            said(&output).contains("provost login --profile 127.0.0.1"),
            "{}",
            said(&output)
        );
    }
}

/// Proves CL-6, FL-7.
#[test]
fn a_person_signs_in_to_enrol_a_machine_of_their_own_and_is_signed_in_to_nothing_else() {
    for home in homes_once("login_enrol") {
        let Some(stage) = stage(home) else { return };
        let devices = || {
            let listed = stage.does_as_admin(&["devices", "list", "-o", "json"]);
            let listed: Value = serde_json::from_str(&listed).unwrap();
            listed["devices"].as_array().unwrap().clone()
        };
        let is_signed_out = || {
            let listed = stage.does_as_admin(&["mcp-sessions", "list", "--status", "active", "-o", "json"]);
            let listed: Value = serde_json::from_str(&listed).unwrap();
            listed["sessions"] == Value::Array(Vec::new()) && !stage.file().exists()
        };
        // Where people enrol no machines of their own, and where somebody thinks better of it.
        let output = stage.enrols("bob", "allow");
        let words = said(&output);
        assert_eq!(output.status.code(), Some(5), "{words}");
        assert!(
            words.contains("fleet.enrolment.selfEnrol") && words.contains("provost enrolment-tokens create"),
            "{words}"
        );
        assert!(is_signed_out() && devices().is_empty(), "{words}");
        let on = ["--fleet-enrolment-self-enrol", "signed_in", "--reason", "r"];
        stage.does_as_admin(&[&["settings", "set"], &on[..]].concat());
        let output = stage.enrols("bob", "deny");
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(is_signed_out() && devices().is_empty());

        let output = stage.enrols("bob", "allow");
        let words = said(&output);
        assert!(output.status.success(), "{words}");
        assert!(words.contains("signed in as bob@acme.example"), "{words}");
        let enrolled: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&enrolled["organization"], &enrolled["mode"]),
            (&"acme".into(), &"user".into())
        );
        let all = devices();
        assert_eq!((all.len(), &all[0]["id"]), (1, &enrolled["deviceId"]));
        assert!(all[0]["ownerUserId"].is_string(), "{all:?}");
        // The machine stays when the sign-in has ended, and works.
        assert!(is_signed_out(), "{words}");
        let once = stage.person(&["agent", "run", "--once"]).output().unwrap();
        assert!(once.status.success(), "{}", said(&once));
        assert_eq!(devices()[0]["status"], "active");
        // Nobody signs in for what is refused afterwards.
        let again = ["agent", "enrol", "--sign-in", "--server", &stage.url];
        let again = stage.person(&again).output().unwrap();
        assert_eq!(again.status.code(), Some(2), "{}", said(&again));
        assert!(said(&again).contains("enrolled already"), "{}", said(&again));
        // Whoever signs in is told what is in their name, and by which application.
        let output = stage.login(&["--scope", "read,fleet:enrol_self"], |address| {
            let mut browser = Browser::default();
            let page = browser.open(&format!("{address}&login_hint=bob"));
            browser.decide(&stage.url, &page, "allow");
        });
        let words = said(&output);
        assert!(
            words.contains("1 machine is in your name, the latest laptop, enrolled with "),
            "{words}"
        );
        let id = enrolled["deviceId"].as_str().unwrap();
        let reason = ["--confirm", "--reason", "it is none of mine"];
        let mut own = stage.person(&[&["devices", "retire-own", id], &reason[..]].concat());
        let retired = own.output().unwrap();
        assert!(retired.status.success(), "{}", said(&retired));
        assert_eq!(devices()[0]["status"], "retired");
        let Stage { server, .. } = stage;
        assert_eq!(server.stop(), 0);
    }
}

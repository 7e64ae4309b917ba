//! What an entry may be, for denials.

use super::live::{called, machine, servers};
use crate::{Client, Odd};
use serde_json::{Value, json};

/// How a denied server is met.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    /// By a key that is denied.
    Key,
    /// By what nobody can read.
    Doubt(Odd),
    Not,
}

/// Returns how each server of these entries is met where these are denied, and the key that is said for certain.
fn met(entries: &[Value], denied: &[&str]) -> Vec<(Met, Option<String>)> {
    let folder = machine("meant");
    let mut outcomes = Vec::new();
    for some in entries.chunks(64) {
        let named: Vec<(String, String)> = some
            .iter()
            .enumerate()
            .map(|(at, entry)| (format!("nice{at}"), entry.to_string()))
            .collect();
        let named: Vec<(&str, String)> = named
            .iter()
            .map(|(name, entry)| (name.as_str(), entry.clone()))
            .collect();
        folder.write("home/ada/.claude.json", &servers(&named));
        let live = folder.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
        for (name, entry) in named {
            let call = called(&format!("mcp__{name}__read"));
            let candidates = live.candidates(&call);
            assert_eq!(candidates.len(), 1, "{entry}");
            let server = candidates[0];
            let is_key = |key: &&str| server.key == **key || server.also.iter().any(|also| also == key);
            let mut doubts = server.doubts.iter();
            let doubt = doubts.find(|doubt| denied.iter().any(|key| doubt.is_of(key)));
            let outcome = match doubt {
                _ if denied.iter().any(is_key) => Met::Key,
                Some(doubt) => Met::Doubt(doubt.odd),
                None => Met::Not,
            };
            outcomes.push((outcome, live.resolve(&call).map(|server| server.key)));
        }
    }
    outcomes
}

fn remote(url: &str) -> Value {
    json!({ "type": "http", "url": url })
}

fn command(line: &str) -> Value {
    let mut words = line.split('|');
    let program = words.next().unwrap();
    let words: Vec<&str> = words.collect();
    json!({ "command": program, "args": words })
}

const LINEAR: &str = "url:https://mcp.linear.app/sse";
const FILES: &str = "npm:@acme/files";

/// Proves IV-7.
#[test]
fn every_spelling_of_a_denied_address_is_that_address_or_may_be() {
    for (url, expected) in [
        ("https:\\\\mcp.linear.app\\sse", Met::Key),
        ("https://mcp.linear.app/s\tse", Met::Key),
        ("ht\ntps://mcp.linear.app/sse", Met::Key),
        ("https://mcp。linear。app/sse", Met::Doubt(Odd::Host)),
        ("https://ｍｃｐ.linear.app/sse", Met::Doubt(Odd::Host)),
        ("https://mcp.lin\u{ad}ear.app/sse", Met::Doubt(Odd::Host)),
        ("https:/mcp.linear.app/sse", Met::Key),
        ("https:mcp.linear.app/sse", Met::Key),
        ("https://mcp.lin%65ar.app/sse", Met::Key),
        ("https://mcp%2Elinear.app/sse", Met::Key),
        ("https://mcp.linear%E3%80%82app/sse", Met::Doubt(Odd::Host)),
        ("  https://mcp.linear.app/sse \u{1}", Met::Key),
        ("\u{0}https://mcp.linear.app/sse", Met::Key),
        ("https://mcp.linear.app./sse", Met::Key),
        ("HTTPS://MCP.Linear.APP/sse", Met::Key),
        ("https://mcp.linear.app:/sse", Met::Key),
        ("https://mcp.linear.app:0443/sse#x", Met::Key),
        ("http://mcp.linear.app:80/sse", Met::Key),
        ("https://mcp.linear.app/x%40y/..\\sse?z", Met::Key),
        ("${LINEAR}", Met::Doubt(Odd::Address)),
        ("$LINEAR/sse", Met::Doubt(Odd::Address)),
        ("https://${HOST}/sse", Met::Doubt(Odd::Address)),
        ("https://${HOST:-good.example}/sse", Met::Doubt(Odd::Address)),
        ("https://mcp.linear.app/${PATH_OF_IT}", Met::Doubt(Odd::Address)),
        ("https://mcp.linear.app.evil.test/sse", Met::Not),
        ("https://mcp.linear.app/other", Met::Not),
        ("https://mcp.linear.app@evil.test/sse", Met::Not),
        ("https://evil.test/https://mcp.linear.app.test/sse", Met::Not),
        ("https://good.example/${PATH_OF_IT}", Met::Not),
        ("https://good.example/mcp?key=${KEY}", Met::Not),
    ] {
        let text = url.to_owned();
        let places = [
            remote(url),
            json!({ "httpUrl": url }),
            json!({ "command": "npx", "args": ["-y", "mcp-remote", url, "--header", "Authorization: Bearer ${TOKEN}"] }),
            json!({ "command": "npx", "args": ["-y", "bridge@1.0.0", format!("--url={url}")] }),
            json!({ "command": "npx", "args": ["-y", "bridge@1.0.0"], "env": { "MCP_URL": url } }),
            json!({ "command": "npx", "args": ["-y", "bridge@1.0.0", json!({ "server": { "url": url } }).to_string()] }),
        ];
        // A text that is a variable alone, or has no scheme, is an address only where a client takes it for one.
        let count = if text.starts_with('$') { 2 } else { places.len() };
        for (place, (outcome, _)) in places.iter().zip(met(&places[..count], &[LINEAR])) {
            assert_eq!(outcome, expected, "{place}");
        }
        for (place, (outcome, _)) in places.iter().zip(met(&places[..count], &["npm:other"])) {
            assert_eq!(outcome, Met::Not, "{place}");
        }
    }
}

/// Proves IV-7.
#[test]
fn every_spelling_of_a_denied_package_is_that_package_or_may_be() {
    let denied = [FILES, "oci:docker.io/mcp/brave-search", "pypi:mcp-server-git"];
    for line in [
        "npx|-y|@acme/files",
        "npx|-y|@Acme/Files@1.2.3",
        "npx|-y|alias@npm:@acme/files",
        "npx|-y|alias@npm:@acme/files@^1",
        "npx|-y|-p|@acme/files@1|-c|files",
        "npx|-p@acme/files|files",
        "npm|exec|--package=@acme/files|--|files",
        "npm|--silent|exec|@acme/files",
        "npx|-y|-p|one|-p|@acme/files|run",
        "npx|-y|@acme%2ffiles",
        "npx|-y|https://registry.npmjs.org/@acme/files/-/files-1.0.0.tgz",
        "deno|run|-A|npm:@acme/files",
        "deno|run|-A|npm:/@acme/files@1/main",
        "bunx|--bun|@acme/files@latest",
        "bun|x|--silent|@acme/files",
        "pnpm|--reporter=silent|dlx|@acme/files",
        "yarn|dlx|-q|@acme/files",
        "sh|-c|npx -y @acme/files",
        "sh|-c|npx -y @acme/files | tee log; true",
        "bash|-lc|exec npx -y '@acme'/\"files\"@1 2>/dev/null",
        "cmd|/c|npx -y @acme/files",
        "env|X=1|npx|-y|@acme/files",
        "env|-S|npx -y @acme/files",
        "/opt/node/bin/npx|-y|@acme/files",
        "/home/ada/.nvm/versions/node/v22/bin/npx|@acme/files",
        "node|--inspect|/srv/node_modules/@acme/files/dist/index.js",
        "node|/srv/node_modules//@acme/files/dist/index.js",
        "node|/srv/node_modules/./@acme//files/dist/index.js",
        "node|/srv/node_modules/x/../@acme/files/dist/index.js",
        "node|/srv/Node_Modules/@Acme/Files/index.js",
        "node|node_modules/.pnpm/@acme+files@1.0.0/node_modules/@acme/files/index.js",
        "node|file:///srv/node_modules/%40acme/files/index.js",
        "python3|/srv/lib/python3.12/site-packages/mcp_server_git/__main__.py",
        "python3|venv/lib/python3.12/site-packages/../site-packages//mcp_server_git.py",
        "venv/bin/mcp-server-git",
        "venv\\Scripts\\mcp-server-git.exe",
        "wrapper|--config|{\"command\":\"npx\",\"args\":[\"-y\",\"\\u0040acme/files\"]}",
        "npx|-y|some-wrapper@1.0.0|@acme/files",
        "uvx|--from|mcp-server-git|cmd",
        "uvx|--from|MCP_Server.git==1.0|cmd",
        "uvx|--from=mcp-server-git[all]>=1|cmd",
        "uv|tool|run|mcp-server-git",
        "uv|tool|run|--from|mcp_server_git|x",
        "pipx|run|--spec|mcp-server-git==2|x",
        "pipx|run|--spec=mcp-server-git|x",
        "python3|-m|mcp_server_git",
        "python3|-X|dev|-m|mcp_server_git.main",
        "/home/ada/.local/bin/mcp-server-git|--x",
        "mcp-server-git.exe",
        "uvx|https://files.pythonhosted.org/packages/a/b/mcp_server_git-1.0-py3-none-any.whl",
        "docker|--context|x|run|-i|mcp/brave-search",
        "docker|run|-i|--some-new-flag|y|mcp/brave-search:1",
        "podman|run|-i|docker://docker.io/mcp/brave-search@sha256:00",
        "podman|--remote|run|docker.io/mcp/brave-search",
        "docker|run|registry-1.docker.io/mcp/brave-search",
        "sudo|-A|nerdctl|run|index.docker.io/mcp/brave-search",
        "docker|compose|run|mcp/brave-search",
    ] {
        assert_eq!(met(&[command(line)], &denied)[0].0, Met::Key, "{line}");
    }
    for variable in [
        json!({ "command": "npx", "args": ["-y", "x"], "env": { "npm_config_package": "@acme/files" } }),
        json!({ "command": "npx", "args": ["-y", "files"], "env": { "npm_config_package": "x,@acme/files@1" } }),
        json!({ "command": "npx -y -q=1 @acme/files" }),
    ] {
        assert_eq!(
            met(std::slice::from_ref(&variable), &denied)[0].0,
            Met::Key,
            "{variable}"
        );
    }
    for line in [
        "npx|-y|${PACKAGE}",
        "npx|-y|@acme/$NAME",
        "docker|run|-i|${IMAGE:-good}",
        "sh|-c|A=@acme/fi; B=les; npx -y $A$B",
        "sh|-c|echo \"a: b\"; npx -y $P",
        "sh|-c|x: ; npx -y $P",
        "npx|-y|$(printf %s%s @acme/fi les)",
        "npx|-y|`cat name`",
        "npx|-y|%PACKAGE%",
        "npx|-y|mcp-remote|${URL}",
    ] {
        assert_eq!(
            met(&[command(line)], &denied)[0].0,
            Met::Doubt(Odd::Command),
            "{line}"
        );
    }
}

/// Proves IV-7.
#[test]
fn what_has_more_than_is_read_may_be_any_server() {
    let denied = [FILES, "oci:docker.io/mcp/brave-search", "pypi:mcp-server-git"];
    // Nothing that stands before an address, or beside it, keeps it from being read.
    let decoys = format!(
        "true {} npx mcp-remote https://mcp.linear.app/sse",
        "http:; ".repeat(64)
    );
    let far = format!(
        "true {} {}; npx mcp-remote https://mcp.linear.app/sse",
        "http:/x/".repeat(60),
        "a/".repeat(20_000)
    );
    for line in [decoys, far] {
        let entry = json!({ "command": "sh", "args": ["-c", line] });
        assert_eq!(met(&[entry], &[LINEAR])[0].0, Met::Doubt(Odd::Size));
    }
    let fewer = format!(
        "true {} npx mcp-remote https://mcp.linear.app/sse",
        "http:; ".repeat(63)
    );
    let entry = json!({ "command": "sh", "args": ["-c", fewer] });
    assert_eq!(met(&[entry], &[LINEAR])[0].0, Met::Key);
    let long = json!({ "command": "sh", "args": ["-c", "a ".repeat(40_000)] });
    let many: Vec<String> = (0..600).map(|at| format!("word-{at}")).collect();
    let deep = (0..5).fold(json!(["x"]), |inner, _| json!([inner.to_string()]));
    for entry in [
        long,
        json!({ "command": "sh", "args": many }),
        json!({ "command": "sh", "args": [deep.to_string()] }),
    ] {
        assert_eq!(met(&[entry], &denied)[0].0, Met::Doubt(Odd::Size));
    }
}

/// Proves IV-7.
#[test]
fn what_is_plainly_another_server_is_no_denied_one_and_is_said_as_before() {
    let denied = [
        FILES,
        LINEAR,
        "npm:mcp-server-fetch",
        "npm:evil",
        "pypi:evil-two",
        "oci:docker.io/mcp/brave-search",
        "go:github.com/acme/files",
    ];
    for (line, key) in [
        ("npx|-y|@acme/files-other@1.0.0", Some("npm:@acme/files-other")),
        ("npx|-y|@acme-two/files@1.0.0", Some("npm:@acme-two/files")),
        ("npx|-y|files@1.0.0", Some("npm:files")),
        ("npx|-y|evil.js-free@1.0.0", Some("npm:evil.js-free")),
        // Another index has one of that name, and that one is not denied.
        ("uvx|mcp-server-fetch==1.0", Some("pypi:mcp-server-fetch")),
        ("docker|run|-i|--rm|mcp/evil", Some("oci:docker.io/mcp/evil")),
        (
            "docker|run|-i|-e|TOKEN=${TOKEN}|--rm|mcp/fetch",
            Some("oci:docker.io/mcp/fetch"),
        ),
        ("npx|-y|good@1.0.0|/home/ada/evil", None),
        ("npx|-y|good@1.0.0|--token|${TOKEN}", Some("npm:good")),
        (
            "npx|-y|mcp-remote|https://good.example/mcp|--header|Authorization: Bearer ${TOKEN}",
            None,
        ),
        (
            "npx|-y|mcp-remote|https://good.example/mcp",
            Some("url:https://good.example/mcp"),
        ),
        ("./run.sh|--token|${TOKEN}", None),
    ] {
        let (outcome, said) = met(&[command(line)], &denied).remove(0);
        if line.ends_with("/evil") && key.is_none() {
            // The last part of a path may be a program of that name.
            assert_eq!(outcome, Met::Key, "{line}");
            continue;
        }
        assert_eq!((outcome, said.as_deref()), (Met::Not, key), "{line}");
    }
    let quiet = json!({
        "type": "http", "url": "https://good.example/mcp", "description": "not evil, see @acme/files", "tools": ["evil"],
        "headers": { "X-From": "npx @acme/files https://mcp.linear.app/sse" },
    });
    assert_eq!(met(&[quiet], &denied)[0].0, Met::Not);
}

/// A small source of choices, the same in each run.
struct Choices(u64);

impl Choices {
    fn of(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(count).unwrap()).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.of(of.len())]
    }

    /// Writes a host or a path with other signs for the same.
    fn respelt(&mut self, text: &str, is_host: bool) -> String {
        let mut written = String::new();
        for sign in text.chars() {
            match self.of(12) {
                0 => written.extend(
                    ['%']
                        .into_iter()
                        .chain(format!("{:02x}", u32::from(sign)).chars()),
                ),
                1 if is_host => written.push(sign.to_ascii_uppercase()),
                2 => written.extend(['\t', sign]),
                3 => written.extend([sign, '\n']),
                _ => written.push(sign),
            }
        }
        written
    }

    fn address(&mut self, host: &str, path: &str) -> String {
        let begin = self.one(&["", " ", "\u{1f}", "\t", "\u{0} "]);
        let scheme = self.one(&["https", "HTTPS", "h\nttps", "http"]);
        let slashes = self.one(&["", "/", "//", "\\\\", "/\\", "////"]);
        let user = self.one(&["", "", "u@", "u:p@", "good.example@", "@@"]);
        let host = self.respelt(host, true);
        let port = if scheme == "http" {
            ""
        } else {
            self.one(&["", ".", ":", ":443", ".:0443"])
        };
        let steps = self.one(&["/", "\\", "/./", "/a/../", "/a b/%2e%2E/", "//", "/x@y/..\\"]);
        let path = self.respelt(path, false);
        let end = self.one(&["", "/", "?a=b", "#x/../y", "/.", "\\", " "]);
        format!("{begin}{scheme}:{slashes}{user}{host}{port}{steps}{path}{end}")
    }

    fn line(&mut self, package: &str) -> Value {
        let spec = format!(
            "{package}{}",
            self.one(&["", "@1", "@latest", "@^2.0", "@>=1 <3"])
        );
        let spec = match self.of(5) {
            0 => format!("alias@npm:{spec}"),
            1 => format!("--package={spec}"),
            2 => format!("npm:{spec}"),
            3 => format!("-p{spec}"),
            _ => spec,
        };
        let begin = self.one(&[
            "",
            "env A=1 ",
            "sudo -n ",
            "nice -n 5 ",
            "/usr/bin/env -i ",
            "timeout 9 ",
        ]);
        let program = self.one(&[
            "npx",
            "/opt/x/npx",
            "npm exec",
            "bunx",
            "pnpm dlx",
            "yarn dlx",
            "deno run -A",
            "C:\\x\\npx.cmd",
        ]);
        let flags = self.one(&["", " -y", " --yes --unknown x", " -q -c files"]);
        let end = self.one(&["", " -- files", " | tee x", " && true", ";true"]);
        let line = format!("{begin}{program}{flags} {spec}");
        match self.of(3) {
            0 => json!({ "command": "sh", "args": ["-c", format!("{line}{end}")] }),
            1 => json!({ "command": line }),
            _ => {
                let words: Vec<&str> = line.split(' ').collect();
                json!({ "command": words[0], "args": &words[1..] })
            }
        }
    }
}

/// Proves IV-7.
#[test]
fn spellings_of_a_grammar_are_met_where_they_are_of_what_is_denied_and_nowhere_else() {
    let mut choices = Choices(0x9e37_79b9_7f4a_7c15);
    let denied = [LINEAR, FILES];
    let mut evil = Vec::new();
    let mut good = Vec::new();
    for _ in 0..400 {
        evil.push(remote(&choices.address("mcp.linear.app", "sse")));
        evil.push(choices.line("@acme/files"));
        good.push(remote(&choices.address("mcp.linear.app.evil.test", "sse")));
        good.push(remote(&choices.address("mcp.linear.app", "other")));
        good.push(choices.line("@acme/files-other"));
    }
    for (entry, (outcome, _)) in evil.iter().zip(met(&evil, &denied)) {
        assert_ne!(outcome, Met::Not, "{entry}");
    }
    for (entry, (outcome, _)) in good.iter().zip(met(&good, &denied)) {
        assert_eq!(outcome, Met::Not, "{entry}");
    }
}

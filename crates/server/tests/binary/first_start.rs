//! The first start, the second, several at once, and the end.

use crate::harness::{Server, get, home, homes, succeed};
use provost_kernel::db::{Access, Conn};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn a_first_start_without_a_terminal_writes_a_token_that_works_and_the_second_says_nothing() {
    for home in homes("first") {
        let first = home.serve(&[]);
        let (file, token) = (first.token_file().unwrap(), first.token());
        assert_eq!(file.file_name().unwrap(), "first-token");
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let (status, body) = first.accounts("default", &token);
        assert_eq!((status, body["total"].as_i64()), (200, Some(1)), "{body}");
        assert!(!first.log.contains(&token) && !first.stdout.contains(&token));
        for part in [
            "A new installation was made in ".to_owned(),
            format!("url           http://127.0.0.1:{}\n", first.port),
            "organization  default\n".to_owned(),
            format!("token         in {}\n", file.display()),
            ", in 90 days\n".to_owned(),
            "provost service-accounts list\n".to_owned(),
            format!(
                "  provost profile set default --url http://127.0.0.1:{} --organization default < '{}'\n",
                first.port,
                file.display()
            ),
        ] {
            assert!(first.stdout.contains(&part), "{part} is not in {}", first.stdout);
        }
        assert_eq!(first.stop(), 0);
        let second = home.serve(&[]);
        assert_eq!(second.stdout, "");
        assert!(!second.log.contains("first admin"), "{}", second.log);
        assert_eq!(second.accounts("default", &token).0, 200);
    }
}

#[test]
fn a_first_start_that_ended_before_its_commit_is_made_up_by_the_next() {
    for home in homes("cut_before") {
        let folder = home.path("data-of-tokens");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("token");
        let words = ["--bootstrap-token-file", file.to_str().unwrap()];
        // What such a start leaves: the file, of its owner alone, and nothing in it.
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let server = home.serve(&words);
        assert_eq!(server.accounts("default", &server.token()).0, 200);
        assert_eq!(server.token_file().unwrap(), file);
    }
}

#[test]
fn a_first_start_on_a_taken_port_keeps_its_token() {
    let home = home("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = home.refuse(&["serve", "--listen", &address, "--metrics-listen", "off"]);
    assert!(code == 1 && said.contains("cannot be listened on"), "{said}");
    assert!(!home.path("data/first-token").exists());
    let server = home.serve(&[]);
    assert_eq!(server.accounts("default", &server.token()).0, 200);
}

#[test]
fn an_empty_file_that_others_could_have_opened_gets_no_token() {
    let home = home("cut_open");
    let (file, link, aim) = (home.path("token"), home.path("link"), home.path("aim"));
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&aim, "").unwrap();
    std::fs::set_permissions(&aim, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&aim, &link).unwrap();
    for place in [&file, &link] {
        let words = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];
        let place = ["--bootstrap-token-file", place.to_str().unwrap()];
        let (code, said) = home.refuse(&[&words[..], &place[..]].concat());
        assert!(
            code == 1 && said.contains("bootstrap token file cannot be made"),
            "{said}"
        );
    }
    assert_eq!(std::fs::read(&aim).unwrap(), b"");
}

#[test]
fn a_start_after_one_that_ended_before_it_wrote_its_token_names_the_way_in() {
    for home in homes("cut_behind") {
        let first = home.serve(&[]);
        let file = first.token_file().unwrap();
        assert_eq!(first.stop(), 0);
        // As if it had been killed between the commit and the write.
        std::fs::write(&file, "").unwrap();
        let second = home.serve(&[]);
        assert!(
            second.log.contains(
                "ended before it wrote it; `provost recover --organization default` issues another"
            ),
            "{}",
            second.log
        );
        let made = home.run(&["recover", "--organization", "default", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(second.accounts("default", made["token"].as_str().unwrap()).0, 200);
    }
}

/// `script` of util-linux gives a program a terminal.
#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_the_token_is_shown_last_and_stands_in_no_file() {
    let home = home("terminal");
    let server = home.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
    let words: Vec<_> = server
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = format!(
        "echo pid=$$; exec '{}' {}",
        server.get_program().to_string_lossy(),
        words.join(" ")
    );
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--flush", "--command", &line, "/dev/null"])
        .env_clear()
        .current_dir(&home.dir);
    for (name, value) in server.get_envs() {
        script.envs(value.map(|value| (name, value)));
    }
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (mut said, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&said).contains("asks for the token") {
        let read = output.read(&mut part).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&part[..read]);
    }
    let said = String::from_utf8(said).unwrap();
    let (_, after) = said.split_once("pid=").unwrap();
    let pid = after.split_whitespace().next().unwrap();
    assert!(
        Command::new("kill")
            .args(["-TERM", pid])
            .status()
            .unwrap()
            .success()
    );
    drop(output);
    child.wait().unwrap();
    let (log, block) = said.split_once("A new installation was made in ").unwrap();
    assert!(log.contains("ready"), "{said}");
    let token = block
        .lines()
        .find_map(|line| line.strip_prefix("token         prov_sat_"));
    let token = token.unwrap().trim();
    assert!(!log.contains(token), "{said}");
    assert!(block.contains("The token is shown this once."), "{said}");
    assert!(!home.path("data/first-token").exists());
}

#[test]
fn the_printed_curl_line_works_when_pasted() {
    let home = home("curl");
    let server = home.serve(&["--organization", "Acme & Söhne"]);
    assert!(
        server.stdout.contains("\norganization  acme-s-hne\n"),
        "{}",
        server.stdout
    );
    let line = server
        .stdout
        .lines()
        .find(|line| line.trim_start().starts_with("curl "))
        .unwrap();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line);
    let answer: Value = serde_json::from_str(&succeed(shell)).unwrap();
    assert_eq!(answer["total"], 1);
}

#[test]
fn the_token_file_is_private_new_and_where_the_flag_says() {
    for home in homes("tokenfile") {
        let file = home.path("it's the token");
        let path = file.to_str().unwrap();
        let server = home.serve(&["--bootstrap-token-file", path]);
        let token = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(!server.stdout.contains(token.trim()));
        assert_eq!(server.accounts("default", token.trim()).0, 200);
        let line = server
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with("curl "))
            .unwrap();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line);
        assert!(succeed(shell).contains("\"total\":1"));
        // A later start has nothing to write, so the file is no obstacle.
        server.stop();
        home.serve(&["--bootstrap-token-file", path]);
    }
}

#[test]
fn a_token_file_that_is_there_is_not_overwritten_and_nothing_is_made() {
    for home in homes("tokenkept") {
        let file = home.path("token");
        std::fs::write(&file, "precious").unwrap();
        let words = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "off",
            "--bootstrap-token-file",
        ];
        let (code, said) = home.refuse(&[&words[..], &[file.to_str().unwrap()]].concat());
        assert_eq!(code, 1);
        assert!(said.contains("bootstrap token file cannot be made"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        let server = home.serve(&[]);
        assert!(
            server.stdout.contains("\norganization  default\n"),
            "{}",
            server.stdout
        );
    }
}

#[test]
fn servers_that_start_together_on_one_database_make_one_organization() {
    for home in homes("together").into_iter().filter(|home| !home.is_sqlite()) {
        let outs: Vec<_> = (0..4).map(|n| home.path(&format!("out{n}"))).collect();
        let start = |out: &std::path::PathBuf| {
            let words = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];
            crate::harness::Server::start(home.command(&words), out)
        };
        let servers: Vec<_> = std::thread::scope(|scope| {
            let starting: Vec<_> = outs.iter().map(|out| scope.spawn(|| start(out))).collect();
            starting
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let tokens: Vec<_> = servers
            .iter()
            .filter(|server| !server.stdout.is_empty())
            .collect();
        assert_eq!(tokens.len(), 1);
        let token = tokens[0].token();
        for server in &servers {
            let (status, body) = server.accounts("default", &token);
            assert_eq!((status, body["total"].as_i64()), (200, Some(1)));
        }
    }
}

#[test]
fn servers_with_other_names_for_the_first_organization_make_one_as_well() {
    for home in homes("names").into_iter().filter(|home| !home.is_sqlite()) {
        let names = ["One", "Two", "Three", "Four"];
        let start = |name: &str| {
            let words = [
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--metrics-listen",
                "off",
                "--organization",
                name,
            ];
            crate::harness::Server::start(home.command(&words), &home.path(name))
        };
        let servers: Vec<_> = std::thread::scope(|scope| {
            let starting: Vec<_> = names.iter().map(|name| scope.spawn(|| start(name))).collect();
            starting
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(
            servers.iter().filter(|server| !server.stdout.is_empty()).count(),
            1
        );
    }
}

#[test]
fn organizations_are_made_beside_a_server() {
    for home in homes("beside") {
        let server = home.serve(&[]);
        let token = home.init();
        assert_eq!(server.accounts("acme", &token).0, 200);
        let (code, said) = home.refuse(&["init", "--organization", "Acme"]);
        assert_eq!((code, said.contains("exists already")), (1, true), "{said}");
        let text = home.run(&["init", "--organization", "Other", "--organization-id", "other-1"]);
        assert!(text.starts_with("organization     other-1\n"), "{text}");
    }
}

#[test]
fn the_documents_that_need_no_token_are_served() {
    let home = home("public");
    let server = home.serve(&[]);
    for path in [
        "/healthz",
        "/readyz",
        "/api/headless/v1/openapi.json",
        "/.well-known/provost-keys.json",
    ] {
        assert_eq!(get(server.port, path, None).0, 200, "{path}");
    }
}

/// Proves ME-5.
#[test]
fn metrics_count_requests_and_name_nobody() {
    let home = home("metrics");
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
    ];
    let server = crate::harness::Server::start(home.command(&words), &home.path("stdout"));
    let token = server.token();
    assert_eq!(server.accounts("default", &token).0, 200);
    let (_, after) = server.log.split_once("metrics on http://127.0.0.1:").unwrap();
    let port = after.split('/').next().unwrap().parse().unwrap();
    let (status, text) = get(port, "/metrics", None);
    assert_eq!(status, 200);
    for part in [
        r#"provost_requests_total{operation="listHeadlessServiceAccounts",status="200"} 1"#,
        r#"provost_request_seconds_bucket{operation="listHeadlessServiceAccounts",le="0.05"} "#,
        "process_resident_memory_bytes ",
        "\nprovost_waiting_units ",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("default") && !text.contains("sa_"), "{text}");
    // A page in somebody's browser gets here under a name of its own.
    for (head, status) in [
        ("Host: localhost", 200),
        ("Host: 127.0.0.1:1", 200),
        ("Host: evil.example", 403),
        ("Host: 192.0.2.1", 403),
        ("Host: localhost\r\nOrigin: https://evil.example", 403),
        ("Host: localhost\r\nOrigin: null", 403),
    ] {
        let (answered, body) = crate::harness::ask(port, &format!("GET /metrics HTTP/1.1\r\n{head}"));
        assert_eq!(answered, status, "{head}: {body}");
        assert_eq!(
            body.contains("provost_build_info"),
            status == 200,
            "{head}: {body}"
        );
    }
    // The operator chose the port, so it must not be silently left out.
    let in_use = format!("127.0.0.1:{port}");
    let other = crate::harness::home("metrics2");
    let (code, said) = other.refuse(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", &in_use]);
    assert!(code == 1 && said.contains("http.metrics_listen"), "{said}");
}

#[test]
fn a_stop_finishes_what_was_accepted_and_ends_with_0() {
    for home in homes("stop") {
        let mut server = home.serve(&[]);
        let token = server.token();
        let body = r#"{"name":"late","permissionRole":"viewer","scopes":["audit:read"]}"#;
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let late = format!(
            "POST /api/headless/v1/organizations/default/service-accounts HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             X-Reason: a test\r\nIdempotency-Key: a-key-for-the-late-one\r\nConnection: close\r\n\
             Expect: 100-continue\r\n\r\n",
            body.len()
        );
        // The request has begun when the stop comes, for it was asked to go on, and its body follows the stop.
        stream.write_all(late.as_bytes()).unwrap();
        let mut interim = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        stream.read_exact(&mut interim).unwrap();
        assert!(
            interim.starts_with(b"HTTP/1.1 100 "),
            "{}",
            String::from_utf8_lossy(&interim)
        );
        stream.write_all(&body.as_bytes()[..10]).unwrap();
        server.signal("TERM");
        server.wait_for("stopping");
        stream.write_all(&body.as_bytes()[10..]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        assert!(TcpStream::connect(("127.0.0.1", server.port)).is_err());
        let again = home.serve(&[]);
        assert_eq!(again.accounts("default", &token).1["total"], 2);
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let home = home("twice");
    let mut server = home.serve(&[]);
    // A request that never completes keeps the graceful stop waiting.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = "POST /api/headless/v1/organizations/default/service-accounts HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    get(server.port, "/healthz", None);
    server.signal("INT");
    server.wait_for("stopping");
    server.signal("INT");
    server.wait_for("stopped without waiting");
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_recovered_organization_has_a_new_admin_and_an_audit_entry() {
    for home in homes("recover") {
        let server = home.serve(&[]);
        let made: Value =
            serde_json::from_str(&home.run(&["recover", "--organization", "default", "--json"])).unwrap();
        let (status, body) = server.accounts("default", made["token"].as_str().unwrap());
        assert_eq!((status, body["total"].as_i64()), (200, Some(2)));
        provost_kernel::statements! {
            FIND = "SELECT COUNT(*) FROM audit_entries WHERE organization_id = ?1 AND action = 'organization.recovered'";
        }
        let count = |organization: &str| {
            let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
            let params = provost_kernel::params![organization];
            conn.read(|tx| tx.query_opt(&FIND, params, |row| row.get::<i64>(0)))
                .unwrap()
        };
        assert_eq!(count("default"), Some(1));
        let (code, said) = home.refuse(&["recover", "--organization", "nobody"]);
        assert!(
            code == 1 && said.contains("no organization with the key \"nobody\""),
            "{said}"
        );
        assert_eq!(count("nobody"), Some(0));
    }
}

/// The allocator reads its options before the program begins: a server begins again to set one that nobody set.
#[test]
#[cfg(target_os = "linux")]
fn a_server_gives_freed_memory_back_unless_it_is_told_otherwise() {
    let home = home("purge");
    for (said, expected) in [(None, "0"), (Some("250"), "250")] {
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        command.env_remove("MIMALLOC_PURGE_DELAY");
        command.envs(said.map(|delay| ("MIMALLOC_PURGE_DELAY", delay)));
        let server = Server::start(command, &home.path("stdout"));
        let environment = std::fs::read(format!("/proc/{}/environ", server.child.id())).unwrap();
        let delays: Vec<String> = environment
            .split(|byte| *byte == 0)
            .filter_map(|entry| entry.strip_prefix(b"MIMALLOC_PURGE_DELAY="))
            .map(|delay| String::from_utf8_lossy(delay).into_owned())
            .collect();
        assert_eq!(delays, [expected]);
        assert_eq!(server.stop(), 0);
    }
}

/// A core dump would put keys and tokens on a disk; what the shell allows does not matter.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_crashes_writes_no_core_dump() {
    let home = home("core");
    let server = home.serve(&[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).unwrap();
    let core = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max core file size"));
    let words: Vec<&str> = core.unwrap().split_whitespace().take(2).collect();
    assert_eq!(words, ["0", "0"]);
    assert_eq!(server.stop(), 0);
}

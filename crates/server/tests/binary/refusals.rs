//! What is refused before anything happens, with a sentence.

use crate::harness::{bare, home, homes, refuse, succeed};
use provost_kernel::db::{Access, Conn, Location};
use std::path::Path;

#[test]
fn a_second_server_on_a_folder_is_told_the_pid_of_the_first() {
    let home = home("lock");
    let server = home.serve(&[]);
    let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1);
    assert!(said.contains(&format!("pid {}", server.child.id())), "{said}");
    let data = home.path("data");
    let (_, said) = home.refuse(&[
        "store",
        "move",
        "--from",
        data.to_str().unwrap(),
        "--to",
        "postgres://localhost:1/x",
    ]);
    assert!(said.contains(&format!("pid {}", server.child.id())), "{said}");
    server.stop();
    home.serve(&[]);
}

#[test]
fn an_open_address_without_tls_is_refused() {
    let home = home("open");
    let (code, said) = home.refuse(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(code == 2 && said.contains("not a loopback address"), "{said}");
    assert!(!home.path("data").exists());
    let words = [
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--behind-proxy",
        "--metrics-listen",
        "off",
    ];
    let mut command = home.command(&words);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    // It runs until it is stopped: the address is accepted.
    while !home.path("data/provost.lock").exists() {
        assert!(child.try_wait().unwrap().is_none());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn tls_files_that_cannot_be_used_are_refused_before_anything_is_made() {
    let home = home("tls");
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/tests/tls");
    let file = |name: &str| certificates.join(name).to_string_lossy().into_owned();
    let (cert, wrong_key) = (file("localhost.pem"), home.path("other.key"));
    std::fs::copy(file("other.key"), &wrong_key).unwrap();
    private(&wrong_key);
    let wrong_key = wrong_key.to_string_lossy().into_owned();
    for (cert, key, expected) in [
        (cert.as_str(), wrong_key.as_str(), "does not belong to"),
        (cert.as_str(), "missing.key", "cannot be read"),
        (wrong_key.as_str(), wrong_key.as_str(), "no certificate"),
    ] {
        let (code, said) = home.refuse(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ]);
        assert!(code == 1 && said.contains(expected), "{said}");
    }
    let (code, _) = home.refuse(&["serve", "--tls-cert", &cert]);
    assert_eq!(code, 2);
    assert!(!home.path("data").exists());
    let key = home.path("localhost.key");
    std::fs::copy(file("localhost.key"), &key).unwrap();
    private(&key);
    let server = home.serve(&["--tls-cert", &cert, "--tls-key", key.to_str().unwrap()]);
    assert!(
        server.log.contains("listening on https://127.0.0.1:"),
        "{}",
        server.log
    );
}

fn private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn unknown_and_wrong_configuration_is_refused_by_name() {
    let home = home("config");
    let file = home.path("provost.toml");
    let path = file.to_str().unwrap();
    for (text, expected) in [
        ("[http]\nlistn = \"127.0.0.1:1\"", "listn"),
        ("[htp]\n", "htp"),
        ("[writer]\nmax_batch = 65", "writer.max_batch must be 1 to 64"),
        ("[writer]\nmax_batch = \"many\"", "writer.max_batch"),
        ("[reader]\nthreads = 0", "reader.threads must be 1 to 64"),
        (
            "[http]\nnetwork_requests = 0",
            "http.network_requests must be 1 to 512",
        ),
        (
            "[http]\nnetwork_connections = 70000",
            "http.network_connections must be 1 to 65536",
        ),
        ("[rate_limits]\nenabled = 1", "rate_limits.enabled"),
        ("[http]\npublic_url = \"ftp://x\"", "http.public_url"),
        (
            "[http]\ntrusted_proxies = [\"10.0.0.0/40\"]",
            "http.trusted_proxies",
        ),
        ("[log]\nformat = \"xml\"", "log.format"),
        ("[http\n", "line 1"),
    ] {
        std::fs::write(&file, text).unwrap();
        for words in [
            &["config", "check", "--config", path][..],
            &["serve", "--config", path],
        ] {
            let (code, said) = home.refuse(words);
            assert!(code == 2 && said.contains(expected), "{text}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    let mut command = home.command(&["config", "check"]);
    command.env("PROVOST_WRITER_MAXBATCH", "1");
    let (code, said) = refuse(command);
    assert!(code == 2 && said.contains("PROVOST_WRITER_MAXBATCH"), "{said}");
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = home("layers");
    let file = home.path("provost.toml");
    std::fs::write(&file, "[http]\nlisten = \"127.0.0.1:1111\"\n[writer]\nmax_batch = 7\nthreads = 3\n[log]\nfilter = \"debug\"\n").unwrap();
    let mut command = bare(&[
        "config",
        "check",
        "--config",
        file.to_str().unwrap(),
        "--data-dir",
        "/flag",
    ]);
    command
        .env("PROVOST_WRITER_MAX_BATCH", "1")
        .env("PROVOST_RATE_LIMITS_ENABLED", "false");
    command
        .env("PROVOST_DATA_DIR", "/environment")
        .env("PROVOST_HTTP_TRUSTED_PROXIES", "10.0.0.0/8, ::1");
    command.env("PROVOST_DATABASE_URL", "postgres://u:hunter2@localhost/x");
    let shown = succeed(command);
    for line in [
        "listen = \"127.0.0.1:1111\"",
        "max_batch = 1",
        "threads = 3",
        "enabled = false",
        "data_dir = \"/flag\"",
        "trusted_proxies = [\"10.0.0.0/8\",\"::1\"]",
        "filter = \"debug\"",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    assert!(
        !shown.contains("database_url") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[test]
fn a_password_in_the_url_is_shown_nowhere() {
    let home = home("password");
    let url = "postgres://provost:hunter2@127.0.0.1:1/provost";
    let mut check = bare(&["config", "check"]);
    check.env("PROVOST_DATABASE_URL", url);
    let shown = succeed(check);
    assert!(
        shown.contains("database_url = …") && !shown.contains("hunter2"),
        "{shown}"
    );
    for words in [
        &["serve", "--database-url", url][..],
        &["init", "--organization", "A", "--database-url", url],
    ] {
        let mut command = bare(words);
        command.current_dir(&home.dir).env("PROVOST_LOG", "trace");
        let (code, said) = refuse(command);
        assert!(
            code == 1
                && said.contains("nothing listens at host and port of the PostgreSQL url")
                && !said.contains("hunter2"),
            "{said}"
        );
    }
    let file = home.path("url");
    std::fs::write(&file, format!("{url}\n")).unwrap();
    let (_, said) = refuse(bare(&[
        "store",
        "check",
        "--database-url-file",
        file.to_str().unwrap(),
    ]));
    assert!(!said.contains("hunter2"), "{said}");
}

/// Proves TL-1.
#[test]
fn a_database_elsewhere_without_tls_is_refused_until_it_is_allowed() {
    let home = home("plaintext");
    let url = "postgres://provost:hunter2@192.0.2.1/provost?sslmode=disable";
    let file = home.path("url");
    std::fs::write(&file, url).unwrap();
    let data = home.path("none");
    let at = ["--database-url-file", file.to_str().unwrap()];
    for words in [
        [&["serve", "--listen", "127.0.0.1:0"][..], &at].concat(),
        [&["init", "--organization", "A"][..], &at].concat(),
        [&["config", "check"][..], &at].concat(),
        [&["store", "check"][..], &at].concat(),
        vec!["store", "move", "--from", data.to_str().unwrap(), "--to", url],
    ] {
        let (code, said) = refuse(bare(&words));
        assert!(
            code == 2 && said.contains("sslmode=disable") && said.contains("--database-plaintext"),
            "{words:?}: {said}"
        );
        assert!(
            said.contains("PROVOST_DATABASE_PLAINTEXT") && !said.contains("hunter2"),
            "{said}"
        );
    }
    let config = home.path("provost.toml");
    std::fs::write(&config, "[store]\ndatabase_plaintext = true\n").unwrap();
    let check = [&["config", "check"][..], &at].concat();
    let mut by_variable = bare(&check);
    by_variable.env("PROVOST_DATABASE_PLAINTEXT", "true");
    for command in [
        by_variable,
        bare(&[&check[..], &["--database-plaintext"]].concat()),
        bare(&[&check[..], &["--config", config.to_str().unwrap()]].concat()),
    ] {
        let shown = succeed(command);
        assert!(
            shown.contains("database_plaintext = true") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}

/// Returns the schema that a test's url names at its end.
fn own_schema(url: &str) -> &str {
    let (_, own) = url.rsplit_once("search_path").unwrap();
    own.trim_start_matches("%3D").trim_start_matches('=')
}

/// Returns the url of another database of the same server.
pub fn in_database(url: &str, database: &str) -> String {
    if url.contains("://") {
        let (server, _) = url.split_once('?').unwrap();
        return format!("{}/{database}", server.rsplit_once('/').unwrap().0);
    }
    let words = url.split_whitespace();
    let kept = words.filter(|word| !word.starts_with("options=") && !word.starts_with("dbname="));
    format!("{} dbname={database}", kept.collect::<Vec<_>>().join(" "))
}

/// Proves DB-1.
#[test]
fn a_schema_that_lies_before_the_stores_own_is_refused() {
    for home in homes("schemas") {
        if home.is_sqlite() {
            continue;
        }
        home.init();
        let Location::Postgres(url) = home.location() else {
            panic!("the second engine is PostgreSQL")
        };
        // What happens when somebody makes a schema of the role's own name, which comes before `public`.
        let own = own_schema(url.expose());
        let before = format!("{own}_before");
        let path = url.expose().replace(own, &format!("{before},{own}"));
        let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
        conn.batch(&format!("CREATE SCHEMA {before}")).unwrap();
        for words in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["init", "--organization", "B"],
            &["recover", "--organization", "acme"],
        ] {
            let mut command = home.command(words);
            command.env("PROVOST_DATABASE_URL", &path);
            let (code, said) = refuse(command);
            assert!(
                code == 1 && said.contains(&format!("lie in the schema {own},")),
                "{words:?}: {said}"
            );
        }
        conn.batch(&format!("DROP SCHEMA {before} CASCADE")).unwrap();
        home.run(&["init", "--organization", "B"]);
    }
}

#[test]
fn a_database_that_is_not_utf8_is_not_served() {
    for home in homes("latin") {
        let Location::Postgres(url) = home.location() else {
            continue;
        };
        let database = format!("{}_latin", own_schema(url.expose()));
        let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
        conn.set_statement_timeouts(false).unwrap();
        conn.batch(&format!("DROP DATABASE IF EXISTS {database}"))
            .unwrap();
        conn.batch(&format!(
            "CREATE DATABASE {database} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
        ))
        .unwrap();
        for words in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["init", "--organization", "B"],
        ] {
            let mut command = home.command(words);
            command.env("PROVOST_DATABASE_URL", in_database(url.expose(), &database));
            let (code, said) = refuse(command);
            let last = said.lines().last().unwrap_or_default();
            assert!(
                code == 1 && last.starts_with("provost: the PostgreSQL database has the encoding LATIN1"),
                "{said}"
            );
        }
        assert!(!home.path("keys").exists(), "nothing was made");
        conn.batch(&format!("DROP DATABASE {database} WITH (FORCE)"))
            .unwrap();
    }
}

#[test]
fn the_start_says_when_rate_limits_are_off() {
    let home = home("limits");
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
    command
        .env("PROVOST_RATE_LIMITS_ENABLED", "false")
        .env("PROVOST_WRITER_MAX_BATCH", "1");
    let server = crate::harness::Server::start(command, &home.path("stdout"));
    assert!(server.log.contains("rate limits are off"), "{}", server.log);
}

#[test]
fn drivers_find_the_port_whatever_the_filter() {
    let home = home("quiet");
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
    command.env("PROVOST_LOG", "error");
    let server = crate::harness::Server::start(command, &home.path("stdout"));
    assert_ne!(server.port, 0);
    // Where the first admin's token is, is never left out either, nor in which place the store is new.
    assert!(server.token_file().is_some(), "{}", server.log);
    assert_eq!(server.log.lines().count(), 4, "{}", server.log);
}

/// Proves ST-1.
#[test]
fn wrong_and_missing_keys_are_refused() {
    for home in homes("wrongkeys") {
        let token = home.init();
        std::fs::rename(home.path("keys"), home.path("kept")).unwrap();
        for words in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["init", "--organization", "B"],
        ] {
            let (code, said) = home.refuse(words);
            assert!(
                code == 1 && said.contains("this store was written with keys that are not in"),
                "{said}"
            );
        }
        assert!(!home.path("keys").exists());
        // The keys of another installation.
        let mut other = bare(&["init", "--organization", "B"]);
        other
            .current_dir(&home.dir)
            .env("PROVOST_DATA_DIR", home.path("other"))
            .env("PROVOST_KEYS_DIR", home.path("keys"));
        succeed(other);
        let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(
            code == 1 && said.contains("is not the one that this store was written with"),
            "{said}"
        );
        std::fs::remove_dir_all(home.path("keys")).unwrap();
        std::fs::rename(home.path("kept"), home.path("keys")).unwrap();
        std::fs::remove_file(home.path("keys/pepper-1.key")).unwrap();
        let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(code == 1 && said.contains("pepper"), "{said}");
        assert!(!said.contains(&token));
    }
}

#[test]
fn usage_errors_end_with_2_and_every_command_has_help() {
    let (code, said) = refuse(bare(&["nonsense"]));
    assert!(code == 2 && said.contains("nonsense"), "{said}");
    let (code, _) = refuse(bare(&["serve", "--data-dir", "x", "--database-url", "y"]));
    assert_eq!(code, 2);
    let mut whole = provost_server::commands::command();
    whole.build();
    let mut waiting = vec![(Vec::<String>::new(), whole)];
    while let Some((path, command)) = waiting.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = succeed(bare(&words));
        let is_group = command.has_subcommands();
        assert!(is_group || help.contains("Example"), "{words:?}: {help}");
        for below in command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
        {
            let mut path = path.clone();
            path.push(below.get_name().to_owned());
            waiting.push((path, below.clone()));
        }
    }
    assert!(succeed(bare(&["--version"])).starts_with("provost "));
}

#[test]
fn documents_are_printed() {
    let openapi: serde_json::Value = serde_json::from_str(&succeed(bare(&["openapi"]))).unwrap();
    assert_eq!(openapi["openapi"], "3.1.0");
    let tools: serde_json::Value = serde_json::from_str(&succeed(bare(&["openapi", "--mcp"]))).unwrap();
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "listHeadlessServiceAccounts")
    );
    assert!(succeed(bare(&["completions", "bash"])).contains("provost"));
    // A reader that has seen enough is no failure.
    let mut head = std::process::Command::new("sh");
    head.arg("-c")
        .arg(format!("{} openapi | head -c 1", env!("CARGO_BIN_EXE_provost")));
    let output = head.output().unwrap();
    assert_eq!((output.stdout, output.stderr), (b"{".to_vec(), Vec::new()));
}

#[test]
fn the_committed_schema_of_the_configuration_is_the_one_that_is_printed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config.schema.json");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(
        committed,
        succeed(bare(&["config", "schema"])),
        "write it with: provost config schema > crates/server/config.schema.json"
    );
}

#[test]
fn a_proxy_that_is_not_named_is_a_warning_a_figure_and_a_wrong_configuration() {
    let home = home("unnamed_proxy");
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
        "--behind-proxy",
    ];
    let figure = |server: &crate::harness::Server| {
        let (_, after) = server.log.split_once("metrics on http://127.0.0.1:").unwrap();
        let port = after.split('/').next().unwrap().parse().unwrap();
        let (_, text) = crate::harness::get(port, "/metrics", None);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("provost_proxy_unnamed "));
        line.unwrap().to_owned()
    };
    let said = "http.behind_proxy is set and http.trusted_proxies is empty";
    let server = crate::harness::Server::start(home.command(&words), &home.path("stdout"));
    let line = server.log.lines().find(|line| line.contains(said)).unwrap();
    assert!(line.contains("\"level\":\"WARN\""), "{line}");
    assert_eq!(figure(&server), "1");
    assert_eq!(server.stop(), 0);
    let mut command = home.command(&["config", "check"]);
    command.env("PROVOST_HTTP_BEHIND_PROXY", "true");
    let (code, told) = crate::harness::refuse(command);
    assert!(code == 2 && told.contains(said), "{told}");
    // With a name, or without a proxy.
    let mut command = home.command(&words);
    command.env("PROVOST_HTTP_TRUSTED_PROXIES", "10.0.0.0/8");
    let server = crate::harness::Server::start(command, &home.path("stdout"));
    assert!(!server.log.contains("http.trusted_proxies"), "{}", server.log);
    assert_eq!(figure(&server), "0");
    assert_eq!(server.stop(), 0);
    let mut command = home.command(&["config", "check"]);
    command
        .env("PROVOST_HTTP_BEHIND_PROXY", "true")
        .env("PROVOST_HTTP_TRUSTED_PROXIES", "10.0.0.0/8");
    crate::harness::succeed(command);
    home.run(&["config", "check"]);
}

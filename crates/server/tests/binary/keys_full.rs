//! A keys folder that is full, or that can only be read, as a mount of its own shows it.
//!
//! A mount needs a namespace of its own. Where the machine gives none to an ordinary process, these say so and show nothing.

use crate::harness::{Home, Server, get, home, patch, post};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Returns a command of this home that runs after `mounts`, a script that finds the folder of the keys in `$KEYS`.
fn mounted(home: &Home, mounts: &str, words: &[&str]) -> Option<Command> {
    let probe = Command::new("unshare").args(["-rm", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("left out: there is no mount namespace here");
        return None;
    }
    let inner = home.command(words);
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-ec", &format!("{mounts}; exec \"$0\" \"$@\"")])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(&home.dir)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("KEYS", home.path("keys"));
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Some(command)
}

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];
const ACCOUNTS: &str = "/api/headless/v1/organizations/acme/service-accounts";

#[test]
fn a_full_keys_folder_refuses_what_needs_a_key_and_recovers_when_there_is_room() {
    let home = home("fullkeys");
    let token = home.init();
    let second: serde_json::Value =
        serde_json::from_str(&home.run(&["recover", "--organization", "acme", "--json"])).unwrap();
    let mounts =
        "cp -a \"$KEYS\" kept; mount -t tmpfs -o size=64k,mode=0700 none \"$KEYS\"; cp -a kept/. \"$KEYS\"";
    let Some(command) = mounted(&home, mounts, &SERVE) else {
        return;
    };
    let server = Server::start(command, &home.path("stdout"));
    let seen = PathBuf::from(format!(
        "/proc/{}/root{}",
        server.child.id(),
        home.path("keys").display()
    ));
    let ballast = seen.join("ballast");
    let full = std::fs::write(&ballast, vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let account = |name: &str| {
        let body = format!(r#"{{"name":"{name}","permissionRole":"viewer","allOfRole":true}}"#);
        post(server.port, ACCOUNTS, &token, &body)
    };
    // A day's first token needs the key of the day.
    for name in ["one", "two"] {
        let (status, said) = account(name);
        assert_eq!(status, 503, "{said}");
        assert!(
            said.contains(r#""retryable":true"#) && said.contains("the keys folder is full"),
            "{said}"
        );
    }
    // Everything else goes on, changes too.
    assert_eq!(server.accounts("acme", &token).0, 200);
    let rename = format!("{ACCOUNTS}/{}", second["serviceAccountId"].as_str().unwrap());
    let body = r#"{"description":"changed meanwhile","reason":"a test"}"#;
    let (status, said) = patch(server.port, &rename, &token, body);
    assert_eq!(status, 200, "{said}");
    assert_eq!(get(server.port, "/readyz", None).0, 200);
    std::fs::remove_file(&ballast).unwrap();
    let (status, said) = account("one");
    assert_eq!(status, 201, "{said}");
    assert!(said.contains("prov_sat_"), "{said}");
    assert_eq!(get(server.port, "/readyz", None).0, 200);
}

#[test]
fn a_keys_folder_that_can_only_be_read_is_said_at_start() {
    let home = home("readkeys");
    home.init();
    let mounts = "mount --bind \"$KEYS\" \"$KEYS\"; mount -o remount,bind,ro \"$KEYS\"";
    let Some(mut command) = mounted(&home, mounts, &SERVE) else {
        return;
    };
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("the keys folder cannot be written to"), "{said}");
}

#[test]
fn a_day_key_that_cannot_be_used_is_said_at_start() {
    let home = home("days");
    home.init();
    let key = home.path("keys/day-20000.key");
    std::fs::write(&key, "short").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (_, said) = home.refuse(&SERVE);
    assert!(
        said.contains("the key of day 20000") && said.contains("day-20000.key"),
        "{said}"
    );
    std::fs::remove_file(&key).unwrap();
    drop(home.serve(&[]));
}

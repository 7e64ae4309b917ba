//! Who may read and change the files of an installation.

use crate::harness::{Server, home, refuse, succeed};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a command under a mask of the process that takes nothing away.
fn unmasked(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.env_clear().stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        shell.envs(value.map(|value| (name, value)));
    }
    if let Some(dir) = command.get_current_dir() {
        shell.current_dir(dir);
    }
    shell
}

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];

/// Proves DU-2.
#[test]
fn the_files_of_a_store_are_its_owners_whatever_the_mask() {
    let home = home("modes");
    let server = Server::start(unmasked(&home.command(&SERVE)), &home.path("stdout"));
    let store = ["provost.db", "provost.db-wal", "provost.db-shm"].map(|name| home.path("data").join(name));
    for file in &store {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(&home.path("data")), 0o700);
    succeed(unmasked(&home.command(&["store", "backup", "backup.db"])));
    assert_eq!(mode(&home.path("backup.db")), 0o600);
    assert_eq!(mode(&home.path("backup.db.mac")), 0o600);
    drop(server);
    // It was killed: all three are there, and open, as an earlier version may have left them.
    for file in &store {
        set(file, 0o664);
    }
    let server = home.serve(&[]);
    for file in &store {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        let said = format!("the file {} of the store was open to others", file.display());
        assert!(server.log.contains(&said), "{}", server.log);
    }
    assert_eq!(server.stop(), 0);
    let server = home.serve(&[]);
    assert!(!server.log.contains("open to others"), "{}", server.log);
}

#[test]
fn a_data_folder_that_everybody_may_write_to_is_refused() {
    let home = home("open_folder");
    let data = home.path("data");
    std::fs::create_dir(&data).unwrap();
    set(&data, 0o703);
    for words in [&SERVE[..], &["init", "--organization", "Acme"]] {
        let (code, said) = home.refuse(words);
        assert!(
            code == 1 && said.contains("everybody on this machine may write to the data folder"),
            "{said}"
        );
    }
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "nothing was made");
    for (bits, said) in [
        (0o770, Some("its group may write to it;")),
        (0o705, Some("everybody may look into it;")),
        (
            0o775,
            Some("its group may write to it, and everybody may look into it;"),
        ),
        (0o750, None),
        (0o700, None),
    ] {
        set(&data, bits);
        let server = home.serve(&[]);
        match said {
            Some(said) => assert!(server.log.contains(said), "{bits:o}: {}", server.log),
            None => assert!(!server.log.contains("open to others"), "{bits:o}: {}", server.log),
        }
        assert_eq!(
            server.log.matches("is open to others").count(),
            usize::from(said.is_some())
        );
        server.stop();
    }
    set(&data, 0o702);
    let (_, said) = refuse(home.command(&["recover", "--organization", "default"]));
    assert!(said.contains("everybody on this machine may write"), "{said}");
}

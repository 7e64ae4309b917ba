//! A machine below a folder: who may be on it.

use super::*;
use rustix::process::geteuid;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

struct Machine(PathBuf);

impl Machine {
    /// A machine with one person, whose account is that of this process, as its installer left it.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("provost-people-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let machine = Self(path.canonicalize().unwrap());
        machine.knows("");
        machine.put(
            "etc/nsswitch.conf",
            "passwd:         files systemd\nhosts: files dns\n",
        );
        machine.put("home/ada/x", "");
        machine.put("usr/sbin/x", "");
        machine.put("var/lib/private/scanner/x", "");
        machine.put("run/systemd/userdb/io.systemd.DynamicUser", "");
        machine
    }

    fn put(&self, below: &str, text: &str) {
        let path = self.0.join(below);
        fs::create_dir_all(folder_of(&path)).unwrap();
        fs::write(path, text).unwrap();
    }

    fn removes(&self, below: &str) {
        let path = self.0.join(below);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// Writes the file of accounts: ada, a service, and more.
    fn knows(&self, more: &str) {
        let me = geteuid().as_raw();
        let text = format!(
            "ada:x:{me}:{me}::/home/ada:/bin/sh\ndaemon:x:9999:1::/usr/sbin:/usr/sbin/nologin\n{more}"
        );
        self.put("etc/passwd", &text);
    }

    fn people(&self) -> People {
        people(&self.0, Platform::Linux, &BTreeSet::from([geteuid().as_raw()]))
    }

    fn has_all(&self) -> bool {
        self.people().has_all
    }

    /// Writes something, says whether everybody is known then, and takes it away.
    fn has_all_with(&self, below: &str) -> bool {
        self.put(below, "");
        let has_all = self.has_all();
        self.removes(below);
        has_all
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Proves FH-6.
#[test]
fn the_file_is_everything_where_no_source_but_it_can_name_somebody() {
    let machine = Machine::new();
    for (said, has_all) in [
        ("passwd: files", true),
        ("passwd:files systemd", true),
        ("passwd: files [NOTFOUND=continue] systemd # sss", true),
        ("# passwd: sss", true),
        ("", true),
        ("hosts: files dns sss", true),
        // Without lines that ask elsewhere it is the file.
        ("passwd: compat systemd", true),
        ("passwd: files sss", false),
        ("passwd: sss files systemd", false),
        ("passwd: files [!SUCCESS=continue]ldap", false),
        ("passwd: files winbind", false),
        ("passwd: files nis", false),
        ("passwd: files mymachines", false),
        ("passwd: files altfiles systemd", false),
        ("passwd: db files", false),
        ("passwd : files\npasswd: ldap", false),
    ] {
        machine.put("etc/nsswitch.conf", said);
        assert_eq!(machine.has_all(), has_all, "{said}");
    }
    // Where there is none the C library takes the file, and some systems have another one.
    machine.removes("etc/nsswitch.conf");
    assert!(machine.has_all());
    machine.put("usr/etc/nsswitch.conf", "passwd: files sss");
    assert!(!machine.has_all());
    machine.removes("usr/etc");
    fs::create_dir(machine.0.join("etc/nsswitch.conf")).unwrap();
    assert!(!machine.has_all(), "it cannot be read");
}

/// Proves FH-6.
#[test]
fn systemd_adds_nobody_where_there_is_no_record_of_a_person() {
    let machine = Machine::new();
    for (below, has_all) in [
        ("run/systemd/userdb/io.systemd.Multiplexer", true),
        ("run/systemd/userdb/io.systemd.Home", true),
        ("run/systemd/userdb/com.example.Directory", false),
        ("etc/userdb/lena.user", false),
        ("etc/userdb/staff.group", true),
        ("run/userdb/1234600001.user", false),
        ("run/host/userdb/lena.user", false),
        ("usr/lib/userdb/lena.user-privileged", false),
        ("usr/local/lib/userdb/lena.user", false),
        ("var/lib/systemd/home/local.public", true),
        ("var/lib/systemd/home/lena.identity", false),
    ] {
        assert_eq!(machine.has_all_with(below), has_all, "{below}");
    }
    assert!(machine.has_all());
    // Where systemd is no source, its records are of nobody.
    machine.put("etc/nsswitch.conf", "passwd: files\n");
    assert!(machine.has_all_with("etc/userdb/lena.user"));
}

/// Proves FH-6.
#[test]
fn every_account_of_the_file_is_looked_at_whatever_its_number_and_a_line_that_is_not_understood_is_somebody()
{
    let machine = Machine::new();
    machine.knows(
        "lena:x:1234600001:1::/srv/lena:/bin/bash\nci:x:501:1::/var/ci:/bin/false\n# a comment\n\nnobody:x:65534:1::/nonexistent:/bin/false\nbus:x:81:81::/:/bin/false\n",
    );
    for home in ["srv/lena/x", "var/ci/x"] {
        machine.put(home, "");
    }
    let found = machine.people();
    for home in [
        "home/ada",
        "srv/lena",
        "var/ci",
        "usr/sbin",
        "",
        "var/lib/private/scanner",
    ] {
        let home = if home.is_empty() {
            machine.0.clone()
        } else {
            machine.0.join(home)
        };
        assert!(found.homes.contains(&home), "{home:?}: {found:?}");
    }
    assert!(found.has_all && !found.homes.contains(&machine.0.join("nonexistent")));
    for line in [
        "+::::::",
        "+lena::::::",
        "-bob",
        "lena:x:1001",
        "lena:x:many:1::/home/lena:/bin/sh",
        "lena",
    ] {
        machine.knows(line);
        assert!(!machine.has_all(), "{line}");
    }
    machine.put("etc/passwd", "");
    assert!(!machine.has_all());
    machine.removes("etc/passwd");
    assert!(!machine.has_all());
    // More homes than are looked at.
    machine.knows("");
    for number in 0..MOST_HOMES {
        machine.put(&format!("home/{number}/x"), "");
    }
    let found = machine.people();
    assert!(!found.has_all && found.homes.len() == MOST_HOMES);
}

/// Proves FH-6.
#[test]
fn who_asked_and_is_in_no_list_is_somebody() {
    let machine = Machine::new();
    let me = geteuid().as_raw();
    let has_all = |asked: &[u32]| {
        let asked = asked.iter().copied().collect();
        people(&machine.0, Platform::Linux, &asked).has_all
    };
    assert!(has_all(&[]) && has_all(&[me, 9_999]));
    assert!(!has_all(&[me, 1_234_600_001]));
    // On macOS people are not in the file, which says so itself.
    assert!(!people(&machine.0, Platform::Macos, &BTreeSet::new()).has_all);
}

/// Proves FH-6.
#[test]
fn a_folder_among_homes_is_looked_at_and_whose_owner_is_none_is_somebody() {
    let machine = Machine::new();
    // It is of somebody who is known.
    machine.put("home/shared/x", "");
    symlink(machine.0.join("home/shared"), machine.0.join("home/linked")).unwrap();
    let found = machine.people();
    assert!(found.has_all && found.homes.contains(&machine.0.join("home/shared")));
    assert!(found.homes.contains(&machine.0.join("home/linked")));
    // A home that can be locked looks empty.
    for name in [".ecryptfs", ".fscrypt", "lena.home", "lena.homedir"] {
        let below = format!("home/{name}");
        machine.put(&below, "");
        assert!(!machine.has_all(), "{name}");
        machine.removes(&below);
    }
    machine.put(".fscrypt/x", "");
    assert!(!machine.has_all());
    machine.removes(".fscrypt");
    assert!(machine.has_all());
    // Nobody of the list has the number of this process any more: what is of it is somebody's, wherever homes lie.
    let stranger = |homes: &str| {
        let text =
            format!("root:x:4000000001:0::/nonexistent:/bin/sh\nbob:x:4000000002:1::{homes}/bob:/bin/sh\n");
        machine.put("etc/passwd", &text);
        people(&machine.0, Platform::Linux, &BTreeSet::new())
    };
    let found = stranger("/home");
    assert!(!found.has_all && found.homes.contains(&machine.0.join("home/ada")));
    machine.removes("home");
    machine.put("other/x", "");
    assert!(stranger("/home").has_all, "{:?}", stranger("/home"));
    machine.put("data/people/lena/x", "");
    let found = stranger("/data/people");
    assert!(!found.has_all && found.homes.contains(&machine.0.join("data/people/lena")));
    assert!(stranger("/home").has_all);
    for (below, member) in [
        ("etc/default/useradd", "GROUP=100\nHOME=/data/people\n"),
        ("etc/adduser.conf", "DHOME=\"/data/people\"\n"),
    ] {
        machine.put(below, member);
        assert!(!stranger("/home").has_all, "{below}");
        machine.removes(below);
    }
    // Folders of the system have owners of their own in them.
    machine.put("var/lib/thing/x", "");
    assert!(stranger("/var/lib").has_all);
}

/// Proves FH-6.
#[test]
fn homes_that_are_hidden_are_not_empty() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let home = machine.0.join("home");
    machine.removes("home/ada");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o0)).unwrap();
    let has_all = machine.has_all();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!has_all);
}

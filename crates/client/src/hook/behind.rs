//! Who stands behind a hook: a client, or somebody who tries it.
//!
//! ```text
//! systemd ── sshd ── bash ── provost hook run          by hand: nothing on the way is a client
//! systemd ── bash ── claude ── sh ── provost hook run  whatever is not known may be one
//! ```
//!
//! A hook that was tried answers as any other. It shows that the line answers, and not that a client starts it, so that coverage does not
//! count it. A person who wants to be counted can start it in a way that nobody tells from a client's: this finds mistakes.

use std::fs;
use std::path::Path;

/// LIMIT: processes on the way to the first one. Ours.
const MOST: usize = 32;
/// What stands between a person and a program, by the names that the kernel has, of which it keeps fifteen letters.
const NO_CLIENTS: [&str; 31] = [
    "agetty",
    "ash",
    "bash",
    "busybox",
    "csh",
    "dash",
    "doas",
    "fish",
    "init",
    "ksh",
    "login",
    "mksh",
    "provost",
    "run0",
    "runuser",
    "screen",
    "SCREEN",
    "script",
    "sh",
    "sshd",
    "sshd-session",
    "su",
    "sudo",
    "systemd",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "tmux: client",
    "tmux: server",
    "zsh",
];

/// Says whether nothing stands behind this process but shells and what begins sessions of people; `false` where that cannot be told.
pub fn is_by_hand(processes: &Path) -> bool {
    let mut at = "self".to_owned();
    for _ in 0..MOST {
        let Some((name, above)) = process(&processes.join(&at)) else {
            return false;
        };
        // This process is the hook, whatever it is called.
        if at != "self" && !NO_CLIENTS.contains(&name.as_str()) {
            return false;
        }
        if above == 0 {
            // It began outside of what is seen here: a container's first process may be anybody's, and was looked at.
            return at != "self";
        }
        at = above.to_string();
    }
    false
}

/// Returns the name of a process and the number of the one above it.
fn process(folder: &Path) -> Option<(String, u32)> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name may hold anything, brackets among it.
    let (begin, rest) = stat.rsplit_once(')')?;
    let (_, name) = begin.split_once('(')?;
    let above = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), above))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Processes(PathBuf);

    impl Processes {
        /// Makes processes, of which each stands above the one before it.
        fn new(name: &str, all: &[&str]) -> Self {
            let folder = std::env::temp_dir().join(format!("provost-behind-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            for (place, name) in all.iter().enumerate() {
                let own = if place == 0 {
                    "self".to_owned()
                } else {
                    place.to_string()
                };
                let above = if place + 1 == all.len() { 0 } else { place + 1 };
                fs::create_dir_all(folder.join(&own)).unwrap();
                fs::write(
                    folder.join(&own).join("stat"),
                    format!("7 ({name}) S {above} 7 7 0 -1"),
                )
                .unwrap();
            }
            Self(folder)
        }
    }

    impl Drop for Processes {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Proves FH-6.
    #[test]
    fn a_hook_is_tried_by_hand_where_nothing_behind_it_can_be_a_client() {
        let long: Vec<&str> = std::iter::repeat_n("bash", 40).collect();
        for (name, all, by_hand) in [
            (
                "ssh",
                &["provost", "bash", "sshd-session", "sshd", "systemd"][..],
                true,
            ),
            (
                "tmux",
                &["provost", "sh", "zsh", "tmux: server", "systemd", "systemd"],
                true,
            ),
            ("npm", &["provost", "sh", "node", "bash", "systemd"], false),
            ("native", &["provost", "sh", "claude", "bash", "systemd"], false),
            ("first", &["provost", "sh", "claude"], false),
            ("odd", &["provost", "sh", "bash) S 0", "systemd"], false),
            ("alone", &["provost"], false),
            ("long", &long, false),
        ] {
            let processes = Processes::new(name, all);
            assert_eq!(is_by_hand(&processes.0), by_hand, "{name}");
        }
        let processes = Processes::new("gone", &["provost", "bash", "systemd"]);
        fs::remove_dir_all(processes.0.join("2")).unwrap();
        assert!(!is_by_hand(&processes.0), "who cannot be seen may be a client");
        assert!(!is_by_hand(Path::new("/nowhere")));
        // A test is started by a program that nobody knows.
        #[cfg(target_os = "linux")]
        assert!(process(Path::new("/proc/self")).is_some());
    }
}

//! How systemd starts the agent.
//!
//! The words are those of systemd 250 and later. A user's manager has fewer means: what needs rights of the system is left out there.

use crate::Mode;
use std::fmt::Write;
use std::path::Path;

/// A unit, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The path of its file below the home, or from the root.
    pub path: &'static str,
    /// What stands in it.
    pub text: String,
    /// The commands after which it runs.
    pub enable: [&'static str; 2],
    /// The commands that end it, before its file is removed.
    pub disable: &'static str,
}

/// What the agent of a unit does beside the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duties {
    /// It judges for the hooks of the machine, which takes folders that they find and more of the processor.
    pub judges: bool,
    /// It sees names and times of conversations in homes, which takes a right that reaches further: it may read what is there, and reads
    /// names alone.
    pub sees_sessions: bool,
}

/// Returns the command before the verbs of services: a person's agent is one of that person's own.
pub(crate) const fn systemctl(mode: Mode) -> &'static str {
    match mode {
        Mode::System => "systemctl",
        Mode::User => "systemctl --user",
    }
}

/// Returns the unit for a mode, a program and duties.
///
/// Errors: the path of the program cannot stand in a unit.
pub fn unit(mode: Mode, program: &Path, duties: Duties) -> Result<Unit, String> {
    let Duties {
        judges,
        sees_sessions,
    } = duties;
    let program = quoted(program)?;
    let mut text = "[Unit]\nDescription=Provost agent\nStartLimitIntervalSec=0\n".to_owned();
    let run = match mode {
        Mode::System => {
            text.push_str("Wants=network-online.target\nAfter=network-online.target\n");
            "agent run --system"
        }
        Mode::User => "agent run",
    };
    // An agent that judges was measured at 42 MiB with 1 000 policies (docs/benchmarks-hook.md), a bundle may hold more of them than that, and
    // the next one is read while the one before still judges: at 45 MiB the kernel would slow it down while hooks wait for its answer.
    let (flag, quota, memory) = if judges {
        (" --judge", "20%", "MemoryMax=128M\nMemoryHigh=80M")
    } else {
        ("", "5%", "MemoryMax=64M\nMemoryHigh=45M")
    };
    // A retired device ends with 3 and is not started again; whatever else ends it is, for ever: a home may be mounted later, and somebody
    // may mend what is wrong.
    let _ = write!(
        text,
        "\n[Service]\nType=exec\nExecStart={program} {run}{flag}\nRestart=on-failure\nRestartSec=120\n\
         RestartPreventExitStatus=3\nTimeoutStopSec=5\nUMask=0077\nNice=10\n{memory}\nCPUQuota={quota}\n\
         TasksMax=16\nNoNewPrivileges=yes\nLockPersonality=yes\nMemoryDenyWriteExecute=yes\nRestrictRealtime=yes\n\
         RestrictSUIDSGID=yes\nRestrictNamespaces=yes\nSystemCallArchitectures=native\n\
         RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n"
    );
    if mode == Mode::User {
        text.push_str("\n[Install]\nWantedBy=default.target\n");
        return Ok(Unit {
            path: ".config/systemd/user/provost-agent.service",
            text,
            enable: [
                "systemctl --user daemon-reload",
                "systemctl --user enable --now provost-agent",
            ],
            disable: "systemctl --user disable --now provost-agent",
        });
    }
    text.push_str("StateDirectory=provost-agent\nStateDirectoryMode=0700\n");
    if judges {
        text.push_str(
            "RuntimeDirectory=provost-agent\nRuntimeDirectoryMode=0755\nCacheDirectory=provost-agent\nCacheDirectoryMode=0755\n",
        );
    }
    // It scans no homes, and so it needs no capability: root reads and writes what is root's, and sees no home at all, unless somebody wants
    // to know whether hooks fire there. What it writes beside its folder are the managed settings of clients, whose folders an admin makes.
    let (homes, rights) = if sees_sessions {
        ("read-only", "CAP_DAC_READ_SEARCH")
    } else {
        ("yes", "")
    };
    let _ = writeln!(
        text,
        "ProtectHome={homes}\nCapabilityBoundingSet={rights}\nAmbientCapabilities="
    );
    text.push_str(
        "ProtectSystem=strict\n\
         ReadWritePaths=/var/lib/provost-agent -/etc/claude-code -/etc/codex\nPrivateTmp=yes\nPrivateDevices=yes\nProtectClock=yes\nProtectHostname=yes\n\
         ProtectControlGroups=yes\nProtectKernelLogs=yes\nProtectKernelModules=yes\nProtectKernelTunables=yes\n\
         ProtectProc=invisible\nProcSubset=all\n\
         SystemCallFilter=@system-service\nSystemCallFilter=~@privileged @resources @mount @debug\nSystemCallErrorNumber=EPERM\n\
         \n[Install]\nWantedBy=multi-user.target\n",
    );
    Ok(Unit {
        path: "/etc/systemd/system/provost-agent.service",
        text,
        enable: ["systemctl daemon-reload", "systemctl enable --now provost-agent"],
        disable: "systemctl disable --now provost-agent",
    })
}

/// Returns a path as it stands in `ExecStart`.
fn quoted(program: &Path) -> Result<String, String> {
    let shown = program.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if program.is_absolute() && shown.chars().all(is_plain) {
        return Ok(shown);
    }
    Err(format!(
        "{shown:?} cannot stand in a unit of systemd: put the program where its path has no blanks and signs, such as /usr/local/bin/provost"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_judges_only_where_that_was_declared() {
        let text = |mode, judges| {
            let duties = Duties {
                judges,
                sees_sessions: false,
            };
            unit(mode, Path::new("/usr/bin/provost"), duties).unwrap().text
        };
        for mode in [Mode::System, Mode::User] {
            let (plain, judging) = (text(mode, false), text(mode, true));
            assert!(!plain.contains("--judge") && plain.contains("CPUQuota=5%"));
            assert!(!plain.contains("RuntimeDirectory") && !plain.contains("CacheDirectory"));
            assert!(judging.contains(" --judge\n") && judging.contains("CPUQuota=20%"));
            assert!(plain.contains("\nMemoryMax=64M\nMemoryHigh=45M\n"));
            assert!(judging.contains("\nMemoryMax=128M\nMemoryHigh=80M\n"));
            assert_eq!(judging.contains("CacheDirectory"), mode == Mode::System);
        }
    }

    #[test]
    fn homes_are_hidden_from_the_agent_of_the_machine_unless_somebody_wants_them_seen() {
        let text = |sees_sessions| {
            let duties = Duties {
                judges: true,
                sees_sessions,
            };
            let program = Path::new("/usr/bin/provost");
            unit(Mode::System, program, duties).unwrap().text
        };
        let (hidden, seen) = (text(false), text(true));
        assert!(hidden.contains("\nProtectHome=yes\nCapabilityBoundingSet=\nAmbientCapabilities=\n"));
        assert!(seen.contains("\nProtectHome=read-only\nCapabilityBoundingSet=CAP_DAC_READ_SEARCH\n"));
        let others = |text: &str| text.lines().count();
        assert_eq!(others(&hidden), others(&seen), "nothing else is another");
    }
}

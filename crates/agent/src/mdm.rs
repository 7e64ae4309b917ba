//! What a management system of devices needs to roll the agent out. Nothing of it was tried here: each text says so.
//!
//! A text has a machine judge only where that was asked for, and says in a comment what follows from either. A machine whose unit is another
//! one than the text wants fails there by name: it would go on without what was asked for, and nobody would see it.

use crate::Duties;

/// A management system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mdm {
    /// Jamf Pro.
    Jamf,
    /// Microsoft Intune.
    Intune,
    /// Ansible.
    Ansible,
}

/// Returns the text for a system, with the server, the organization and the duties of the machine in it. The enrolment token stands in none:
/// each says where it goes.
///
/// Errors: the server or the organization has signs that could mean something else there; machines of that system cannot judge.
pub fn artefact(mdm: Mdm, server: &str, organization: &str, duties: Duties) -> Result<String, String> {
    let is_plain = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ":/._-[]".contains(c))
    };
    for text in [server, organization] {
        if !is_plain(text) {
            return Err(format!(
                "{text:?} has signs that cannot stand in a script; letters, digits and : / . _ - can"
            ));
        }
    }
    if mdm == Mdm::Jamf && duties.judges {
        return Err(
            "the text for Jamf is for Macs, where no hook believes an agent and none is kept running: print it without --judge; \
             the hooks there ask the server"
                .to_owned(),
        );
    }
    let text = match mdm {
        Mdm::Jamf => JAMF,
        Mdm::Intune => INTUNE,
        Mdm::Ansible => ANSIBLE,
    };
    let flags = match (duties.judges, duties.sees_sessions) {
        (false, _) => "",
        (true, false) => " --judge",
        (true, true) => " --judge --see-sessions",
    };
    Ok(text
        .replace("@JUDGING@", if duties.judges { JUDGES } else { JUDGES_NOT })
        .replace("@FLAGS@", flags)
        .replace("@SERVER@", server)
        .replace("@ORGANIZATION@", organization))
}

/// What a text says of a machine that judges.
const JUDGES: &str = "\
# The machine judges for the hooks that root registered (--judge), once the setting fleet.hooks.judging is on. Without an owner it asks the
# server about everything that is about somebody: provost devices update dev_... --owner-user-id usr_...";

/// What a text says of a machine that does not.
const JUDGES_NOT: &str = "\
# The machine does not judge. Its hooks, if there are any, ask the server at each call; a denied MCP server is refused nowhere on it, and
# neither a quarantine nor a bypass changes what hooks do. Print the text with --judge to have it judge.";

const JAMF: &str = r#"#!/bin/sh
# UNTESTED with Jamf Pro: written after its documentation, and run nowhere by the makers of Provost. Try it on one machine first.
#
# A policy that runs this script after the package that puts the program at /usr/local/bin/provost.
# Parameter 4: the enrolment token, of many uses and with requireApproval (Jamf shows parameters to its admins, and to whoever
# reads the policy's payload; approval is what keeps such a token from making devices by itself).
# The machine does not judge, as no Mac does: its hooks, if there are any, ask the server at each call; a denied MCP server is refused
# nowhere on it, and neither a quarantine nor a bypass changes what hooks do.
set -eu
umask 077
token="${4:?parameter 4 is the enrolment token}"
code=0
/usr/local/bin/provost agent status --system --json >/dev/null 2>&1 || code=$?
# 2 is a machine that is not enrolled. Anything else, such as the 3 of a device that was retired, is for a person to look at.
if [ "$code" -eq 2 ]; then
  file=$(mktemp)
  trap 'rm -f "$file"' EXIT
  printf '%s\n' "$token" > "$file"
  /usr/local/bin/provost agent enrol --system --server @SERVER@ --organization @ORGANIZATION@ --token-file "$file"
elif [ "$code" -ne 0 ]; then
  /usr/local/bin/provost agent status --system >&2 || exit "$code"
fi
# There is no LaunchDaemon yet: until there is, a cron entry or a policy with a frequency runs one round.
/usr/local/bin/provost agent run --once --system

# Extension attribute (detection), a script of its own:
#   #!/bin/sh
#   if /usr/local/bin/provost agent status --system --json >/dev/null 2>&1; then echo '<result>enrolled</result>'; else echo '<result>not enrolled</result>'; fi
"#;

const INTUNE: &str = r#"#!/bin/sh
# UNTESTED with Microsoft Intune: written after its documentation for scripts of Linux and macOS, and run nowhere by the makers of
# Provost. Try it on one machine first. Windows has no agent yet.
#
# Devices > Scripts > Add (bash), execution context Root, frequency "every 1 hour".
# Put the enrolment token where only root reads it: /etc/provost/enrolment-token (0600), by a package or a configuration that is
# encrypted on its way. The text of a script can be read by every admin of Intune.
@JUDGING@
set -eu
code=0
/usr/local/bin/provost agent status --system --json >/dev/null 2>&1 || code=$?
# 2 is a machine that is not enrolled. Anything else, such as the 3 of a device that was retired, is for a person to look at.
if [ "$code" -eq 2 ]; then
  /usr/local/bin/provost agent enrol --system --server @SERVER@ --organization @ORGANIZATION@ --token-file /etc/provost/enrolment-token
  rm -f /etc/provost/enrolment-token
elif [ "$code" -ne 0 ]; then
  exit "$code"
fi
# A unit that is there and is another one ends the script: look at it, and take it away (provost agent uninstall --system).
/usr/local/bin/provost agent install --system@FLAGS@
systemctl daemon-reload
systemctl enable --now provost-agent

# Detection (custom compliance discovery script, prints JSON): exit code 0 and "enrolled": true
#   /usr/local/bin/provost agent status --system --json
"#;

const ANSIBLE: &str = r#"# UNTESTED with Ansible: written after its documentation, and run nowhere by the makers of Provost. Try it with --limit first.
# provost_enrolment_token comes from a vault: ansible-playbook agent.yml --ask-vault-pass
@JUDGING@
- name: The agent of Provost
  hosts: laptops
  become: true
  tasks:
    - name: The program
      ansible.builtin.copy:
        src: files/provost
        dest: /usr/local/bin/provost
        mode: "0755"

    - name: Is it enrolled?
      ansible.builtin.command: /usr/local/bin/provost agent status --system --json
      register: provost_status
      check_mode: false
      changed_when: false
      # 2 is a machine that is not enrolled. 3 is a device that was retired: a person looks at it.
      failed_when: provost_status.rc not in [0, 2]

    - name: Enrol
      when: provost_status.rc == 2
      no_log: true
      changed_when: true
      ansible.builtin.command:
        cmd: /usr/local/bin/provost agent enrol --system --server @SERVER@ --organization @ORGANIZATION@ --token-file -
        stdin: "{{ provost_enrolment_token }}"

    # A unit that is there and is another one fails here: look at it, and take it away (provost agent uninstall --system).
    - name: The unit
      ansible.builtin.command: /usr/local/bin/provost agent install --system@FLAGS@
      register: provost_unit
      changed_when: "'was written' in provost_unit.stderr"

    - name: Run
      ansible.builtin.systemd_service:
        name: provost-agent
        enabled: true
        state: started
        daemon_reload: true
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(mdm: Mdm, judges: bool, sees_sessions: bool) -> Result<String, String> {
        let duties = Duties {
            judges,
            sees_sessions,
        };
        artefact(mdm, "https://provost.example", "acme", duties)
    }

    #[test]
    fn a_rolled_out_machine_judges_only_where_that_was_asked_for_and_the_text_says_which() {
        for mdm in [Mdm::Intune, Mdm::Ansible] {
            let plain = printed(mdm, false, false).unwrap();
            assert!(plain.contains("agent install --system\n"), "{plain}");
            assert!(plain.contains("\n# The machine does not judge."), "{plain}");
            assert!(plain.contains("Print the text with --judge"), "{plain}");
            let judging = printed(mdm, true, false).unwrap();
            assert!(judging.contains("agent install --system --judge\n"), "{judging}");
            assert!(judging.contains("fleet.hooks.judging is on"), "{judging}");
            assert!(judging.contains("--owner-user-id"), "{judging}");
            assert!(!judging.contains("does not judge"), "{judging}");
            let seeing = printed(mdm, true, true).unwrap();
            assert!(
                seeing.contains("agent install --system --judge --see-sessions\n"),
                "{seeing}"
            );
        }
    }

    #[test]
    fn a_text_whose_machines_cannot_judge_is_refused_with_what_to_do() {
        let refused = printed(Mdm::Jamf, true, false).unwrap_err();
        assert!(refused.contains("print it without --judge"), "{refused}");
        let plain = printed(Mdm::Jamf, false, false).unwrap();
        assert!(plain.contains("does not judge, as no Mac does"), "{plain}");
    }

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        for mdm in [Mdm::Jamf, Mdm::Intune, Mdm::Ansible] {
            let text = printed(mdm, false, false).unwrap();
            assert!(!text.contains('@'), "{text}");
        }
    }

    #[test]
    fn signs_that_a_script_would_read_are_refused() {
        assert!(artefact(Mdm::Intune, "https://x/$(id)", "acme", Duties::default()).is_err());
        assert!(artefact(Mdm::Ansible, "https://x", "a; rm -rf /", Duties::default()).is_err());
    }
}

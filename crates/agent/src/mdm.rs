//! What a management system of devices needs to roll the agent out. Nothing of it was tried here: each text says so.

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

/// Returns the text for a system, with the server and the organization in it. The enrolment token stands in none: each says where it goes.
///
/// Errors: the server or the organization has signs that could mean something else there.
pub fn artefact(mdm: Mdm, server: &str, organization: &str) -> Result<String, String> {
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
    let text = match mdm {
        Mdm::Jamf => JAMF,
        Mdm::Intune => INTUNE,
        Mdm::Ansible => ANSIBLE,
    };
    Ok(text
        .replace("@SERVER@", server)
        .replace("@ORGANIZATION@", organization))
}

const JAMF: &str = r#"#!/bin/sh
# UNTESTED with Jamf Pro: written after its documentation, and run nowhere by the makers of Provost. Try it on one machine first.
#
# A policy that runs this script after the package that puts the program at /usr/local/bin/provost.
# Parameter 4: the enrolment token, of many uses and with requireApproval (Jamf shows parameters to its admins, and to whoever
# reads the policy's payload; approval is what keeps such a token from making devices by itself).
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
set -eu
code=0
/usr/local/bin/provost agent status --system --json >/dev/null 2>&1 || code=$?
# 2 is a machine that is not enrolled. Anything else, such as the 3 of a device that was retired, is for a person to look at.
if [ "$code" -ne 2 ]; then exit "$code"; fi
/usr/local/bin/provost agent enrol --system --server @SERVER@ --organization @ORGANIZATION@ --token-file /etc/provost/enrolment-token
rm -f /etc/provost/enrolment-token
/usr/local/bin/provost agent install --system
systemctl daemon-reload
systemctl enable --now provost-agent

# Detection (custom compliance discovery script, prints JSON): exit code 0 and "enrolled": true
#   /usr/local/bin/provost agent status --system --json
"#;

const ANSIBLE: &str = r#"# UNTESTED with Ansible: written after its documentation, and run nowhere by the makers of Provost. Try it with --limit first.
# provost_enrolment_token comes from a vault: ansible-playbook agent.yml --ask-vault-pass
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

    - name: The unit
      ansible.builtin.command: /usr/local/bin/provost agent install --system
      args:
        creates: /etc/systemd/system/provost-agent.service

    - name: Run
      ansible.builtin.systemd_service:
        name: provost-agent
        enabled: true
        state: started
        daemon_reload: true
"#;

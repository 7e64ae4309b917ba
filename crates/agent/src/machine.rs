//! What the agent knows of the machine that it works on, read from files.

use std::fs;

/// Returns the word for the system.
pub(crate) fn platform() -> &'static str {
    if cfg!(target_os = "macos") {
        "macos"
    } else if cfg!(windows) {
        "windows"
    } else {
        "linux"
    }
}

/// Returns the machine's name for itself.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// Returns the number of this installation of the system, where it has one.
pub(crate) fn machine_id() -> Option<String> {
    let text = fs::read_to_string("/etc/machine-id").ok()?;
    let id = text.trim();
    (id.len() == 32).then(|| id.to_owned())
}

/// Returns what the system calls this run of it; without such a name it is one run for ever.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id: String = text
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(64)
        .collect();
    if id.is_empty() { "unknown".to_owned() } else { id }
}

/// Returns the version of the system for people: `Debian GNU/Linux 13 (trixie)`.
pub(crate) fn os_version() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let pretty = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let pretty = pretty
        .map(|name| name.trim_matches(['"', '\'']).trim())
        .filter(|name| !name.is_empty());
    let name = rustix::system::uname();
    let kernel = || {
        format!(
            "{} {}",
            name.sysname().to_string_lossy(),
            name.release().to_string_lossy()
        )
    };
    let version = pretty.map_or_else(kernel, str::to_owned);
    version
        .chars()
        .filter(|letter| !letter.is_control())
        .take(128)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_a_version_that_fits() {
        let version = os_version();
        assert!(!version.is_empty() && version.chars().count() <= 128, "{version}");
    }
}

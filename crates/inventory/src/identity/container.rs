//! Servers that are started as containers.

use super::{Identity, turns};
use crate::launch::after;
use crate::packages;

const WITH_VALUE: [&str; 40] = [
    "-e",
    "--env",
    "-v",
    "--volume",
    "--mount",
    "--name",
    "-p",
    "--publish",
    "--network",
    "--net",
    "-w",
    "--workdir",
    "-u",
    "--user",
    "--entrypoint",
    "--env-file",
    "-l",
    "--label",
    "--add-host",
    "-m",
    "--memory",
    "--cpus",
    "--platform",
    "--pull",
    "-h",
    "--hostname",
    "--device",
    "--cap-add",
    "--cap-drop",
    "--security-opt",
    "--tmpfs",
    "--ulimit",
    "--restart",
    "--gpus",
    "--runtime",
    "--dns",
    "--pid",
    "--ipc",
    "--shm-size",
    "--pids-limit",
];
const ALONE: [&str; 14] = [
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "--rm",
    "--init",
    "--privileged",
    "--read-only",
    "--interactive",
    "--tty",
    "--detach",
    "-q",
    "--quiet",
];
/// Flags that put other files or another program into an image, or variables whose names stand elsewhere.
const TURNING: [&str; 6] = [
    "-v",
    "--volume",
    "--mount",
    "--entrypoint",
    "--env-file",
    "--runtime",
];

/// Returns the image that is run. What stands behind an image is a command of its own, or words for one that nobody knows.
pub(super) fn container(words: &[String]) -> Option<Identity> {
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = match texts.as_slice() {
        // It runs whatever its catalog enables, which is none of its arguments.
        ["mcp", "gateway", ..] => {
            return Some(Identity::named("builtin:docker-mcp-gateway".to_owned()).weak());
        }
        ["run", ..] => &words[1..],
        ["container", "run", ..] => &words[2..],
        _ => return None,
    };
    let behind = after(rest, &WITH_VALUE, &ALONE)?;
    let mut identity = Identity::from(packages::oci(behind.first()?)?);
    identity.is_weak |= behind.len() > 1 || is_turned(&rest[..rest.len() - behind.len()]);
    Some(identity)
}

/// Says whether a flag lets other code run than that of the image.
fn is_turned(flags: &[String]) -> bool {
    flags.iter().enumerate().any(|(at, word)| {
        let (flag, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        let variable = || value.or_else(|| flags.get(at + 1).map(String::as_str));
        TURNING.contains(&flag) || (matches!(flag, "-e" | "--env") && variable().is_none_or(turns))
    })
}

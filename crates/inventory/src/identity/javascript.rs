//! Servers that are started with JavaScript's tools.

use super::{Ground, Identity, known, of_url};
use crate::launch::{Launch, after, simple, unwrapped};
use crate::packages;
use crate::report::Pin;

pub(super) fn npm(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let (mut named, mut is_foreign, mut at) = (None, false, 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        let (flag, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        match flag {
            "-y" | "--yes" | "-q" | "--quiet" | "--silent" | "--prefer-offline" | "--prefer-online"
            | "--bun" => {}
            "--" => break,
            "-p" | "--package" | "--registry" | "--cache" | "--prefix" | "--userconfig" => {
                let value = value.map(str::to_owned).or_else(|| {
                    at += 1;
                    words.get(at - 1).cloned()
                })?;
                match flag {
                    // Two packages: nobody can say which of them holds the command.
                    "-p" | "--package" if named.is_some() => return None,
                    "-p" | "--package" => named = Some(value),
                    "--registry" => is_foreign |= value.trim_end_matches('/') != "https://registry.npmjs.org",
                    "--userconfig" => is_foreign = true,
                    _ => {}
                }
            }
            _ => return None,
        }
    }
    let (spec, rest) = match named {
        Some(spec) => (spec, words.get(at + 1..).unwrap_or_default()),
        None => (words.get(at)?.clone(), &words[at + 1..]),
    };
    let package = packages::npm(&spec)?;
    let inner = match package.key.as_str() {
        "npm:mcp-remote" => rest
            .iter()
            .find(|word| packages::url(word).is_some())
            .map(|word| of_url(word)),
        "npm:supergateway" => bridged(rest, ground, levels),
        _ => None,
    };
    let mut identity = inner.unwrap_or_else(|| package.into());
    identity.is_weak |= is_foreign;
    Some(identity)
}

/// Looks through a bridge to what stands behind it.
fn bridged(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    words.windows(2).find_map(|pair| match pair[0].as_str() {
        "--sse" | "--streamableHttp" => packages::url(&pair[1]).map(|_| of_url(&pair[1])),
        "--stdio" => {
            let (Launch::Program(words), _) = unwrapped(simple(&pair[1])?) else {
                return None;
            };
            known(&words, ground, levels)
        }
        _ => None,
    })
}

pub(super) fn deno(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    // Permissions of Deno stand in one word with their value; its other flags may load code.
    let at = words.iter().position(|word| !is_permission(word))?;
    let spec = words.get(at).filter(|word| !word.starts_with('-'))?;
    if ["npm:", "jsr:", "http://", "https://"]
        .iter()
        .any(|begin| spec.starts_with(begin))
    {
        return packages::deno(spec).map(Identity::from);
    }
    ground.hashed(spec, "script")
}

fn is_permission(word: &str) -> bool {
    ["-A", "-q", "--quiet", "--no-prompt", "--unstable"].contains(&word)
        || ["--allow-", "--deny-", "--unstable-", "--node-modules-dir"]
            .iter()
            .any(|begin| word.starts_with(begin))
}

pub(super) fn node(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    const ALONE: [&str; 6] = [
        "--no-warnings",
        "--enable-source-maps",
        "--trace-warnings",
        "--experimental-strip-types",
        "--experimental-vm-modules",
        "run",
    ];
    let script = after(words, &[], &ALONE)?.into_iter().next()?;
    let plain = script.replace('\\', "/");
    // The last one: packages have packages below them.
    if let Some(at) = plain.rfind("/node_modules/") {
        let below = &plain[at + "/node_modules/".len()..];
        let parts: Vec<&str> = below.split('/').collect();
        let count = if below.starts_with('@') { 2 } else { 1 };
        if parts.len() > count && parts[0] != ".bin" {
            let name = parts[..count].join("/");
            let mut package = packages::npm(&name)?;
            if let Some(version) =
                ground.installed(&format!("{}/node_modules/{name}/package.json", &plain[..at]))
            {
                (package.version, package.pin) = (Some(version), Pin::Exact);
            }
            return Some(package.into());
        }
    }
    ground.hashed(&script, "script")
}

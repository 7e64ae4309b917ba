//! Servers that are started with JavaScript's tools.

use super::{Ground, Identity, launched, of_url};
use crate::address::url;
use crate::launch::{after, simple};
use crate::packages;
use crate::report::Pin;

/// Returns what `npm exec` runs. It reads flags of its own behind the name as well, up to `--`.
pub(super) fn npm_exec(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let own = words.iter().take_while(|word| *word != "--");
    let is_flag = |word: &&String| word.starts_with('-');
    let is_late = own.skip_while(is_flag).any(|word| word.starts_with('-'));
    let mut identity = npm(words, ground, levels)?;
    identity.is_weak |= is_late;
    Some(identity)
}

/// Returns what `bunx` runs, which reads the variables of a project's file.
pub(super) fn bun(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let mut identity = npm(words, ground, levels)?;
    identity.is_weak |= ground.brings_variables();
    Some(identity)
}

pub(super) fn npm(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let (mut named, mut is_weak, mut at) = (None, false, 0);
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
                    "--registry" => is_weak |= value.trim_end_matches('/') != "https://registry.npmjs.org",
                    _ => is_weak = true,
                }
            }
            _ => return None,
        }
    }
    let command = words.get(at)?;
    let rest = words.get(at + 1..).unwrap_or_default();
    let spec = named.as_ref().unwrap_or(command);
    let package = packages::npm(spec)?;
    // Also where it is a bridge: who says which version may say another package, and what a project brings in its place need not lead where its words say.
    is_weak |= packages::is_open(spec) || ground.brings(Some(packages::npm_parts(spec).0));
    // A package that holds no such command leaves it to whatever has that name.
    let own = package.key.rsplit([':', '/']).next();
    is_weak |= named.is_some() && own != Some(command.as_str());
    let inner = match package.key.as_str() {
        "npm:mcp-remote" => remote(rest, ground),
        "npm:supergateway" => bridged(rest, ground, levels),
        _ => None,
    };
    let mut identity = inner.unwrap_or_else(|| package.into());
    identity.is_weak |= is_weak;
    Some(identity)
}

/// Looks through `mcp-remote`: its first word is the address. Behind it only what leads nowhere else leaves the key strong.
fn remote(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    let (address, more) = words.split_first()?;
    url(address)?;
    let is_harmless =
        |word: &String| word == "--debug" || (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()));
    let mut identity = of_url(address, ground.key);
    identity.is_weak |= !more.iter().all(is_harmless);
    Some(identity)
}

/// Looks through a bridge to what stands behind it.
fn bridged(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let [flag, value, more @ ..] = words else {
        return None;
    };
    let mut identity = match flag.as_str() {
        "--sse" | "--streamableHttp" => url(value).map(|_| of_url(value, ground.key))?,
        "--stdio" => launched(simple(value)?, ground, levels),
        _ => return None,
    };
    identity.is_weak |= !more.is_empty();
    Some(identity)
}

pub(super) fn deno(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    // Permissions of Deno stand in one word with their value; its other flags may load code.
    let at = words.iter().position(|word| !is_permission(word))?;
    let spec = words.get(at).filter(|word| !word.starts_with('-'))?;
    if ["npm:", "jsr:", "http://", "https://"]
        .iter()
        .any(|begin| spec.starts_with(begin))
    {
        let name = spec.strip_prefix("npm:").map(|npm| packages::npm_parts(npm).0);
        let mut identity = Identity::from(packages::deno(spec)?);
        identity.is_weak |= ground.brings(name);
        return Some(identity);
    }
    ground.hashed(spec, "script")
}

fn is_permission(word: &str) -> bool {
    ["-A", "-q", "--quiet", "--no-prompt", "--unstable"].contains(&word)
        || ["--allow-", "--deny-", "--unstable-"]
            .iter()
            .any(|begin| word.starts_with(begin))
}

pub(super) fn node(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    const ALONE: [&str; 5] = [
        "--no-warnings",
        "--enable-source-maps",
        "--trace-warnings",
        "--experimental-strip-types",
        "--experimental-vm-modules",
    ];
    let script = after(words, &[], &ALONE)?.into_iter().next()?;
    let plain = script.replace('\\', "/");
    // The last one: packages have packages below them. Weak, because only a path says so: any folder may be called like a package.
    if let Some(at) = plain.rfind("/node_modules/") {
        let below = &plain[at + "/node_modules/".len()..];
        let parts: Vec<&str> = below.split('/').collect();
        let count = if below.starts_with('@') { 2 } else { 1 };
        // Dots lead somewhere else than the folder says.
        let is_plain = !parts.iter().any(|part| matches!(*part, "" | "." | ".."));
        if parts.len() > count && parts[0] != ".bin" && is_plain {
            let name = parts[..count].join("/");
            let mut package = packages::npm(&name)?;
            if let Some(version) =
                ground.installed(&format!("{}/node_modules/{name}/package.json", &plain[..at]))
            {
                (package.version, package.pin) = (Some(version), Pin::Exact);
            }
            return Some(Identity::from(package).weak());
        }
    }
    ground.hashed(&script, "script")
}

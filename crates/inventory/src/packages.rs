//! Names of packages as people write them, and one spelling for each.

use crate::report::Pin;
use crate::secrets::looks_secret;

/// A package, and which version of it.
pub(crate) struct Package {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) pin: Pin,
}

fn package(key: String, version: Option<&str>) -> Package {
    let exact = version.filter(|version| is_exact(version));
    Package {
        key,
        version: exact.map(str::to_owned),
        pin: if exact.is_some() {
            Pin::Exact
        } else {
            Pin::Floating
        },
    }
}

/// Says whether a version names one release; a range, a tag or nothing does not.
fn is_exact(version: &str) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    parts.len() >= 2
        && version.len() <= 64
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()))
        && parts[0].bytes().all(|b| b.is_ascii_digit())
        && !parts.iter().any(|part| part.eq_ignore_ascii_case("x"))
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b".-+!_".contains(&b))
        && !looks_secret(version)
}

fn is_name(name: &str, more: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= 214
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
        && !looks_secret(name)
}

/// `@scope/name@version`; nothing for folders, archives and repositories.
pub(crate) fn npm(spec: &str) -> Option<Package> {
    let spec = spec.strip_prefix("npm:").unwrap_or(spec);
    let at = spec
        .char_indices()
        .skip(1)
        .find(|(_, c)| *c == '@')
        .map(|(at, _)| at);
    let (name, version) = match at {
        Some(at) => (&spec[..at], Some(&spec[at + 1..])),
        None => (spec, None),
    };
    // `name@npm:other` and `name@file:folder` run something else than what they name.
    if version.is_some_and(|version| version.contains([':', '/'])) {
        return None;
    }
    let is_valid = match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_name(scope, b"-_.~") && is_name(name, b"-_.~")),
        None => is_name(name, b"-_.~"),
    };
    is_valid.then(|| package(format!("npm:{}", name.to_lowercase()), version))
}

/// `name[extra]==version`, `name@version`; nothing for folders and repositories.
pub(crate) fn pypi(spec: &str) -> Option<Package> {
    let end = spec
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .unwrap_or(spec.len());
    let (name, mut rest) = spec.split_at(end);
    if let Some(extras) = rest.strip_prefix('[') {
        rest = extras.split_once(']')?.1;
    }
    let rest = rest.trim();
    let version = match rest.strip_prefix("==").or_else(|| rest.strip_prefix('@')) {
        Some(version) if version.contains([':', '/']) => return None,
        Some(version) => Some(version.trim()),
        None if rest.is_empty() || rest.starts_with(['>', '<', '~', '!', '=']) => None,
        None => return None,
    };
    is_name(name, b"-_.").then(|| package(format!("pypi:{}", normalized(name)), version))
}

/// Returns the name of a Python package as the index has it (PEP 503).
pub(crate) fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

/// `registry/repository:tag@sha256:digest`.
pub(crate) fn oci(image: &str) -> Option<Package> {
    let (image, digest) = match image.split_once('@') {
        Some((image, digest)) => (image, Some(digest)),
        None => (image, None),
    };
    let slash = image.rfind('/').map_or(0, |at| at + 1);
    let (repository, tag) = match image[slash..].rfind(':') {
        Some(at) => (&image[..slash + at], Some(&image[slash + at + 1..])),
        None => (image, None),
    };
    let (registry, path) = match repository.split_once('/') {
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path.to_owned()),
        Some(_) => ("docker.io", repository.to_owned()),
        None => ("docker.io", format!("library/{repository}")),
    };
    let registry = match registry {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        registry => registry,
    };
    let is_valid = is_name(registry, b".-:") && path.split('/').all(|part| is_name(part, b"-_."));
    let key = format!("oci:{registry}/{path}").to_lowercase();
    let digest = match digest {
        Some(digest) => Some(
            digest
                .strip_prefix("sha256:")
                .filter(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))?,
        ),
        None => None,
    };
    is_valid.then(|| Package {
        key,
        version: match digest {
            Some(hex) => Some(format!("sha256:{}", hex.to_lowercase())),
            None => tag.filter(|tag| is_name(tag, b"-_.")).map(str::to_owned),
        },
        // A tag can be moved.
        pin: if digest.is_some() {
            Pin::Digest
        } else {
            Pin::Floating
        },
    })
}

/// `module@version`; nothing for what lies on the disk.
pub(crate) fn go(spec: &str) -> Option<Package> {
    let (module, version) = spec.split_once('@')?;
    let is_module = module.contains('.') && module.split('/').all(|part| is_name(part, b"-_.~"));
    is_module.then(|| package(format!("go:{}", module.to_lowercase()), Some(version)))
}

/// `npm:`, `jsr:` and addresses.
pub(crate) fn deno(spec: &str) -> Option<Package> {
    if let Some(npm_spec) = spec.strip_prefix("npm:") {
        return npm(npm_spec).map(|found| Package {
            key: format!("deno:{}", found.key),
            ..found
        });
    }
    if let Some(jsr) = spec.strip_prefix("jsr:") {
        return npm(jsr).map(|found| Package {
            key: found.key.replace("npm:", "deno:jsr:"),
            ..found
        });
    }
    let key = url(spec)?.replacen("url:", "deno:", 1);
    Some(Package {
        key,
        version: None,
        pin: Pin::Floating,
    })
}

/// `Id@version` of `NuGet`.
pub(crate) fn nuget(spec: &str) -> Option<Package> {
    let (name, version) = spec
        .split_once('@')
        .map_or((spec, None), |(name, version)| (name, Some(version)));
    is_name(name, b"-_.").then(|| package(format!("nuget:{}", name.to_lowercase()), version))
}

/// Returns the key of an address: without user, query and fragment, with `*` for parts that look secret. The case of a path stays: it
/// distinguishes servers.
pub(crate) fn url(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let scheme = scheme.to_lowercase();
    let default = match scheme.as_str() {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => return None,
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (authority, path) = match rest[..end].split_once('/') {
        Some((authority, path)) => (authority, path),
        None => (&rest[..end], ""),
    };
    let host = authority.rsplit('@').next().unwrap_or(authority).to_lowercase();
    let host = host.strip_suffix(default).unwrap_or(&host).to_owned();
    let host = host.strip_suffix('.').unwrap_or(&host);
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return None;
    }
    let hidden = |part: &str| {
        if looks_secret(part) {
            "*".to_owned()
        } else {
            part.to_owned()
        }
    };
    let labels: Vec<String> = host.split('.').map(hidden).collect();
    let parts: Vec<String> = path.trim_end_matches('/').split('/').map(hidden).collect();
    let path = parts.join("/");
    let slash = if path.is_empty() { "" } else { "/" };
    let key = format!("url:{scheme}://{}{slash}{path}", labels.join("."));
    (key.len() <= 512 && !looks_secret(&key)).then_some(key)
}

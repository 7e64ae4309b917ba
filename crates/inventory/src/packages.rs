//! Names of packages as people write them, and one spelling for each.

use crate::report::Pin;
use crate::secrets::{has_long_run, known, looks_secret};

/// A package, and which version of it.
pub(crate) struct Package {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) pin: Pin,
    /// Whether it runs what is not in it.
    pub(crate) runs_others: bool,
}

/// Programs that run what their arguments or their input say, whatever packages them: interpreters, bridges, systems of images.
const RUNNING_OTHERS: [&str; 77] = [
    "alpine",
    "amazonlinux",
    "ansible",
    "archlinux",
    "bash",
    "bun",
    "busybox",
    "centos",
    "clojure",
    "cmd",
    "concurrently",
    "cross-env",
    "curl",
    "debian",
    "deno",
    "docker",
    "dotenv",
    "dotenv-cli",
    "elixir",
    "env-cmd",
    "fastmcp",
    "fedora",
    "golang",
    "gunicorn",
    "hatch",
    "inspector",
    "ipython",
    "java",
    "jiti",
    "jupyter",
    "mcp",
    "mcp-cli",
    "mcp-proxy",
    "mcp-remote",
    "mcpo",
    "mcporter",
    "nix",
    "node",
    "nodejs",
    "nodemon",
    "npm",
    "npx",
    "openjdk",
    "pdm",
    "perl",
    "php",
    "pip",
    "pipenv",
    "pipx",
    "pnpm",
    "poetry",
    "powershell",
    "pwsh",
    "python",
    "python-dotenv",
    "python3",
    "rockylinux",
    "ruby",
    "rust",
    "serverless",
    "sh",
    "shx",
    "supergateway",
    "swc-node",
    "ts-node",
    "ts-node-dev",
    "tsx",
    "ubi",
    "ubuntu",
    "uv",
    "uvicorn",
    "uvx",
    "vite-node",
    "xonsh",
    "yarn",
    "zsh",
    "zx",
];

/// Says whether a package runs what is not in it.
pub(crate) fn runs_others(key: &str) -> bool {
    let name = key.rsplit([':', '/']).next().unwrap_or(key);
    RUNNING_OTHERS.contains(&name)
}

fn package(key: String, version: Option<&str>, numbers: usize) -> Package {
    let exact = version.filter(|version| is_exact(version, numbers));
    Package {
        runs_others: runs_others(&key),
        key,
        version: exact.map(str::to_owned),
        pin: if exact.is_some() {
            Pin::Exact
        } else {
            Pin::Floating
        },
    }
}

/// Says whether a version names one release, in so many numbers or more; a range, a tag or nothing does not.
pub(crate) fn is_exact(version: &str, least: usize) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    let must_be_numbers = if least == NPM_NUMBERS { parts.len() } else { 1 };
    (parts.len() == least || (parts.len() > least && least != NPM_NUMBERS))
        && version.len() <= 64
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()))
        && parts
            .iter()
            .take(must_be_numbers)
            .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
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

/// Fewer than three numbers are a range of npm, and ask for a branch with go.
pub(crate) const NPM_NUMBERS: usize = 3;

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
    is_valid.then(|| package(format!("npm:{}", name.to_lowercase()), version, NPM_NUMBERS))
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
    is_name(name, b"-_.").then(|| package(format!("pypi:{}", normalized(name)), version, 2))
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
        runs_others: runs_others(&key),
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
    is_module.then(|| {
        package(
            format!("go:{}", module.to_lowercase()),
            Some(version),
            NPM_NUMBERS,
        )
    })
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
    let address = url(spec).filter(|address| address.is_whole)?;
    Some(Package {
        key: address.key.replacen("url:", "deno:", 1),
        runs_others: false,
        version: None,
        pin: Pin::Floating,
    })
}

/// `Id@version` of `NuGet`.
pub(crate) fn nuget(spec: &str) -> Option<Package> {
    let (name, version) = spec
        .split_once('@')
        .map_or((spec, None), |(name, version)| (name, Some(version)));
    is_name(name, b"-_.").then(|| package(format!("nuget:{}", name.to_lowercase()), version, 2))
}

/// An address as a key.
pub(crate) struct Address {
    pub(crate) key: String,
    /// Whether the key says all of the address.
    pub(crate) is_whole: bool,
}

/// Returns the key of an address: without query and fragment, with `*` for parts that may hold a secret. `None` for what is not
/// plainly an address: where its parts end could be read in two ways, and one of them could show a password. The case of a path stays:
/// it distinguishes servers.
pub(crate) fn url(text: &str) -> Option<Address> {
    if !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains(['@', '\\']) {
        return None;
    }
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_lowercase();
    let default = match scheme.as_str() {
        "http" | "ws" => "80",
        "https" | "wss" => "443",
        _ => return None,
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (authority, path) = match rest[..end].split_once('/') {
        Some((authority, path)) => (authority, path),
        None => (&rest[..end], ""),
    };
    let authority = authority.to_lowercase();
    let bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[bracket..].split_once(':') {
        Some((_, port)) => (&authority[..authority.len() - port.len() - 1], Some(port)),
        None => (authority.as_str(), None),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if !is_host(host) || port.is_some_and(|port| !is_port(port)) {
        return None;
    }
    let mut is_whole = !rest.contains('?');
    let mut hidden = |part: &str, is_shown: bool| {
        if is_shown && part.len() < 40 && !has_long_run(part, 20) && !looks_secret(part) {
            return part.to_owned();
        }
        is_whole = false;
        "*".to_owned()
    };
    let labels: Vec<String> = host.split('.').map(|label| hidden(label, true)).collect();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let parts = path.trim_end_matches('/').split('/');
    let parts: Vec<String> = parts
        .map(|part| hidden(part, part.bytes().all(is_plain)))
        .collect();
    let path = parts.join("/");
    let slash = if path.is_empty() { "" } else { "/" };
    let port = port.filter(|port| *port != default);
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let key = format!("url:{scheme}://{}{port}{slash}{path}", labels.join("."));
    (key.len() <= 512 && known(&key).is_none()).then_some(Address { key, is_whole })
}

fn is_host(host: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-".contains(&b);
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_name),
    }
}

fn is_port(port: &str) -> bool {
    (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
}

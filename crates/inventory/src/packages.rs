//! Names of packages as people write them, and one spelling for each.

use crate::address::{is_private, url};
use crate::report::Pin;
use crate::secrets::looks_secret;

/// A package, and which version of it.
pub(crate) struct Package {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) pin: Pin,
    /// Whether it runs what is not in it.
    pub(crate) runs_others: bool,
}

/// Programs that run what their arguments or their input say, whatever packages them: interpreters, bridges, systems of images.
const RUNNING_OTHERS: [&str; 81] = [
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
    "forever",
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
    "npm-run-all",
    "npx",
    "onchange",
    "openjdk",
    "pdm",
    "perl",
    "php",
    "pip",
    "pipenv",
    "pipx",
    "pm2",
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

/// Ends of names that are files to the tools that take packages: archives are installed, scripts are run.
const FILE_ENDS: [&str; 20] = [
    ".bz2", ".cjs", ".egg", ".gz", ".js", ".jsx", ".mjs", ".mts", ".py", ".pyz", ".sh", ".tar", ".tbz",
    ".tgz", ".ts", ".tsx", ".whl", ".xz", ".zip", ".zst",
];
/// Words before the colon of an image that say from which file or store it comes.
const TRANSPORTS: [&str; 9] = [
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
];
/// Hosts of modules that do not tell capitals from small letters, as keys do not.
const FOLDING: [&str; 3] = ["bitbucket.org/", "github.com/", "gitlab.com/"];

/// Says whether a package runs what is not in it, or is another one on another machine.
pub(crate) fn runs_others(key: &str) -> bool {
    let name = key.rsplit([':', '/']).next().unwrap_or(key);
    let image = key.strip_prefix("oci:").and_then(|image| image.split_once('/'));
    let is_private = image.is_some_and(|(registry, _)| {
        let host = registry.split_once(':').map_or(registry, |(host, _)| host);
        is_private(host)
    });
    is_private || RUNNING_OTHERS.contains(&name)
}

/// Says whether a tool that takes a package by its name, or by its version, takes a file instead.
fn is_file(text: &str) -> bool {
    let text = text.to_lowercase();
    text.starts_with('.') || FILE_ENDS.iter().any(|end| text.ends_with(end))
}

/// Says whether somebody else fills in a part of a name or of a version: `$VERSION` may be another package or an address.
pub(crate) fn is_open(spec: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~@/:+^<>=*|!,[] ".contains(&b);
    !spec.bytes().all(is_plain)
}

fn has_capitals(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_uppercase())
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

/// Returns the name in `@scope/name@version`, and the version.
pub(crate) fn npm_parts(spec: &str) -> (&str, Option<&str>) {
    let spec = spec.strip_prefix("npm:").unwrap_or(spec);
    let at = spec
        .char_indices()
        .skip(1)
        .find(|(_, c)| *c == '@')
        .map(|(at, _)| at);
    match at {
        Some(at) => (&spec[..at], Some(&spec[at + 1..])),
        None => (spec, None),
    }
}

/// `@scope/name@version`; nothing for folders, archives and repositories.
pub(crate) fn npm(spec: &str) -> Option<Package> {
    let (name, version) = npm_parts(spec);
    // `name@npm:other` and `name@file:folder` run something else than what they name.
    if is_file(name) || version.is_some_and(|version| version.contains([':', '/']) || is_file(version)) {
        return None;
    }
    let is_valid = match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_name(scope, b"-_.~") && is_name(name, b"-_.~")),
        None => is_name(name, b"-_.~"),
    };
    let mut package =
        is_valid.then(|| package(format!("npm:{}", name.to_lowercase()), version, NPM_NUMBERS))?;
    // Names without a scope may be older than the rule that they have no capitals: two packages would have one key.
    package.runs_others |= is_open(spec) || (!name.starts_with('@') && has_capitals(name));
    Some(package)
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
        Some(version) if version.contains([':', '/']) || is_file(version.trim()) => return None,
        Some(version) => Some(version.trim()),
        None if rest.is_empty() || rest.starts_with(['>', '<', '~', '!', '=']) => None,
        None => return None,
    };
    let is_valid = is_name(name, b"-_.") && !is_file(name);
    let mut package = is_valid.then(|| package(format!("pypi:{}", normalized(name)), version, 2))?;
    package.runs_others |= is_open(spec);
    Some(package)
}

/// Returns the name of a Python package as the index has it (PEP 503).
pub(crate) fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

/// `registry/repository:tag@sha256:digest`.
pub(crate) fn oci(image: &str) -> Option<Package> {
    let is_open = is_open(image);
    let (image, digest) = match image.split_once('@') {
        Some((image, digest)) => (image, Some(digest)),
        None => (image, None),
    };
    let slash = image.rfind('/').map_or(0, |at| at + 1);
    let (repository, tag) = match image[slash..].rfind(':') {
        Some(at) => (&image[..slash + at], Some(&image[slash + at + 1..])),
        None => (image, None),
    };
    if tag.is_some() && TRANSPORTS.contains(&repository) {
        return None;
    }
    let (registry, path) = match repository.split_once('/') {
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path.to_owned()),
        Some(_) => ("docker.io", repository.to_owned()),
        None => ("docker.io", format!("library/{repository}")),
    };
    let registry = match registry {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        registry => registry,
    };
    // `oci-archive:/home/…` is no registry.
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let has_port = registry.split_once(':').is_none_or(|(_, port)| is_port(port));
    let is_valid = has_port && is_name(registry, b".-:") && path.split('/').all(|part| is_name(part, b"-_."));
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
        runs_others: is_open || runs_others(&key),
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
    if !is_module {
        return None;
    }
    let key = module.to_lowercase();
    let is_folded = FOLDING.iter().any(|host| key.starts_with(host));
    let mut package = package(format!("go:{key}"), Some(version), NPM_NUMBERS);
    package.runs_others |= is_open(spec) || (!is_folded && has_capitals(module));
    Some(package)
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
        runs_others: address.is_private,
        version: None,
        pin: Pin::Floating,
    })
}

/// `Id@version` of `NuGet`.
pub(crate) fn nuget(spec: &str) -> Option<Package> {
    let (name, version) = spec
        .split_once('@')
        .map_or((spec, None), |(name, version)| (name, Some(version)));
    let mut package =
        is_name(name, b"-_.").then(|| package(format!("nuget:{}", name.to_lowercase()), version, 2))?;
    package.runs_others |= is_open(spec);
    Some(package)
}

//! The identity of a server as a report may write it: a kind of a closed list, and what stands behind it in the one spelling that a scan
//! writes. What is compared with it is compared byte by byte.

use super::limits::{MAX_KEY, fits, is_digest, is_fingerprint, is_hidden};
use crate::address::{is_private_address, url};
use crate::client::Client;
use crate::hide::is_no_name;
use crate::packages::{self, Package, runs_others};
use crate::secrets::known;

/// What stands for a key that is not kept.
pub(super) const WITHHELD: &str = "cmd:withheld";
/// How a server is written that Goose has within itself.
const GOOSE: &str = "builtin:goose/";
/// Those that Goose ships. Its configuration can call anything builtin, and what is not here is no more than a name.
const OF_GOOSE: [&str; 6] = [
    "autovisualiser",
    "computercontroller",
    "developer",
    "jetbrains",
    "memory",
    "tutorial",
];
/// LIMIT: the name of what a client has within itself. Ours; a longer one is words.
const MOST_OF_NAME: usize = 40;
/// LIMIT: what a client calls an extension, with whoever publishes it. Ours; a longer one is words.
const MOST_OF_EXTENSION: usize = 120;
/// The gateway of Docker, which is started like any other program.
const DOCKER: &str = "docker-mcp-gateway";

/// Says whether a text is an identity.
pub(super) fn is_key(key: &str) -> bool {
    let Some((kind, rest)) = key.split_once(':') else {
        return false;
    };
    match kind {
        "npm" => is_npm(rest),
        "pypi" => is_of(rest, b"-"),
        "oci" => is_of(rest, b"-_./:") && rest.contains('/'),
        "url" => is_address(rest),
        "go" => is_of(rest, b"-_.~/") && rest.contains('.'),
        "nuget" => is_of(rest, b"-_."),
        "deno" => match rest.split_once(':') {
            Some(("npm" | "jsr", name)) => is_npm(name),
            _ => is_address(rest),
        },
        "ext" => is_of(rest, b"-_.") && rest.contains('.'),
        "bin" | "script" => is_digest(rest),
        "cmd" => rest.strip_prefix("hmac:").is_some_and(is_fingerprint),
        "builtin" => {
            let is_name = |name: &str| !name.is_empty() && !is_no_name(name) && name.to_lowercase() == name;
            rest == DOCKER || rest.strip_prefix("goose/").is_some_and(is_name)
        }
        _ => false,
    }
}

/// Says whether nobody can know from a key what runs, whatever a report says of it: a command of no known form, a script, which loads what
/// lies beside it, an extension, which is called as its folder says and has its servers in its code, an address of which a part is hidden or that each machine has for itself, a program that runs what its arguments say, and
/// everything that is no key.
pub fn is_always_weak(key: &str) -> bool {
    let (kind, rest) = key.split_once(':').unwrap_or_default();
    match kind {
        "npm" | "pypi" | "oci" | "go" | "nuget" => runs_others(key),
        "deno" if !rest.contains("://") => rest.contains('*') || runs_others(key),
        "deno" | "url" => rest.contains('*') || is_private_address(rest),
        "bin" => false,
        // The gateway of Docker is one of these: it runs what its catalog enables.
        "builtin" => !is_builtin(Client::Goose, key),
        _ => true,
    }
}

/// Says whether a text is a key that says what runs on every machine alike: in its one spelling, with nothing hidden and nothing that looks
/// like a credential. A digest of a command is made under a key of its device, and what ships in a client is the client's.
pub fn is_server_key(key: &str) -> bool {
    let is_shared = !["cmd:", "builtin:"].iter().any(|kind| key.starts_with(kind));
    is_shared && fits(key, MAX_KEY) && is_key(key) && is_shown(key) && known(key).is_none()
}

/// Says whether a text is the key of a server that an extension brings along, and one that is shown as it is.
pub(crate) fn is_extension_key(key: &str) -> bool {
    key.starts_with("ext:") && is_key(key) && is_shown(key) && known(key).is_none()
}

/// Says whether a client ships a server within itself: whether a key says so, of which client, and by which name, is a closed list.
pub fn is_builtin(client: Client, key: &str) -> bool {
    client == Client::Goose
        && key
            .strip_prefix(GOOSE)
            .is_some_and(|name| OF_GOOSE.contains(&name))
}

/// Says whether a scan shows a key as it is: it names a package, an image or an address in parts that are no values, or a digest.
pub(super) fn is_shown(key: &str) -> bool {
    let Some((kind, rest)) = key.split_once(':') else {
        return false;
    };
    let is_same = |package: Option<Package>| package.is_some_and(|package| package.key == key);
    match kind {
        "npm" => is_same(packages::npm(rest)),
        "pypi" => is_same(packages::pypi(rest)),
        "oci" => is_same(packages::oci(rest)),
        "go" => is_same(packages::go(&format!("{rest}@v1.0.0"))),
        "nuget" => is_same(packages::nuget(rest)),
        "deno" => is_same(packages::deno(rest)),
        // What a scan hid of a host is no part of one any more.
        "url" => {
            let rest = rest.replace('*', "a");
            url(&rest).is_some_and(|address| address.is_whole && address.key == format!("url:{rest}"))
        }
        "builtin" => {
            let is_plain = |name: &str| is_of(name, b"-_.") && name.len() <= MOST_OF_NAME && !is_hidden(name);
            let is_own =
                |name: &str| is_plain(name) || name.strip_prefix("hidden:").is_some_and(is_fingerprint);
            rest == DOCKER || rest.strip_prefix("goose/").is_some_and(is_own)
        }
        "ext" => rest.len() <= MOST_OF_EXTENSION && !is_hidden(rest),
        "bin" | "script" | "cmd" => true,
        _ => false,
    }
}

fn is_of(text: &str, more: &[u8]) -> bool {
    let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || more.contains(&b);
    !text.is_empty() && text.bytes().all(is_part)
}

fn is_npm(name: &str) -> bool {
    match name.strip_prefix('@') {
        Some(scoped) => scoped.contains('/') && is_of(scoped, b"-_.~/"),
        None => is_of(name, b"-_.~"),
    }
}

fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    ["http", "https", "ws", "wss"].contains(&scheme)
        && is_of(authority, b"-.:*[]")
        && rest
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~*/:[]".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_a_closed_list_and_of_one_spelling() {
        let hex = "0".repeat(64);
        for key in [
            "npm:files".into(),
            "npm:@acme/files".into(),
            "pypi:mcp-server-git".into(),
            "oci:docker.io/library/alpine".into(),
            "url:https://[::1]:8443/Mcp/*".into(),
            "go:github.com/acme/files".into(),
            "deno:npm:@acme/files".into(),
            "deno:https://acme.example/mod.ts".into(),
            format!("bin:sha256:{hex}"),
            "cmd:hmac:00112233445566778899aabbccddeeff".into(),
            "builtin:docker-mcp-gateway".into(),
            "builtin:goose/developer".into(),
            "ext:acme.shelves".into(),
            "ext:local.mcpb.acme.ledger".into(),
        ] {
            assert!(is_key(&key), "{key}");
        }
        for key in [
            "CMD:hmac:00112233445566778899aabbccddeeff".into(),
            "cmd:hmac:00112233445566778899AABBCCDDEEFF".into(),
            "cmd:withheld".into(),
            "npm:Files".into(),
            "npm:".into(),
            "npm:/home/ada/plan".into(),
            "npm:my prompt".into(),
            "Npm:files".into(),
            "url:https://ACME.example".into(),
            "url:https://acme.example/?token=abc".into(),
            "url:file:///home/ada".into(),
            format!("bin:sha256:{}", &hex[1..]),
            "builtin:claude_code/files".into(),
            "builtin:goose/Developer".into(),
            "ext:Acme.shelves".into(),
            "ext:shelves".into(),
            "ext:acme/shelves.x".into(),
            "other:files".into(),
            "files".into(),
        ] {
            assert!(!is_key(&key), "{key}");
        }
    }

    #[test]
    fn a_key_that_holds_a_value_is_not_shown() {
        let hex = "0123456789abcdef0123456789abcdef01234567";
        for key in [
            format!("npm:{hex}"),
            format!("npm:@{hex}/files"),
            format!("pypi:{hex}"),
            format!("oci:docker.io/{hex}/files"),
            format!("go:example.com/{hex}"),
            format!("nuget:{hex}"),
            format!("deno:npm:{hex}"),
            format!("deno:https://acme.example/{hex}"),
            "url:https://hooks.example/services/t0/b0/AbCdEfGhIjKlMnOpQrStUvWx".into(),
            format!("url:https://{hex}.example/mcp"),
            "builtin:goose/please buy the company before anybody hears of it".into(),
            format!("builtin:goose/{hex}"),
            format!("ext:acme.{hex}"),
            format!("ext:{}.b", "a-b-".repeat(40)),
        ] {
            assert!(is_key(&key), "{key}");
            assert!(!is_shown(&key), "{key}");
        }
        for key in [
            "npm:@acme/files",
            "oci:docker.io/library/alpine",
            "go:github.com/acme/files",
            "deno:jsr:@acme/files",
            "url:https://*.example/a/*/mcp",
            "builtin:goose/developer",
            "builtin:goose/hidden:00112233445566778899aabbccddeeff",
        ] {
            assert!(is_shown(key), "{key}");
        }
    }

    #[test]
    fn what_runs_anything_is_weak_and_only_what_a_client_ships_is_builtin() {
        for key in [
            "cmd:hmac:00",
            "ext:acme.shelves",
            "CMD:hmac:00",
            "npm:tsx",
            "oci:docker.io/library/alpine",
            "deno:npm:tsx",
            "url:https://acme.example/*",
            "builtin:goose/evil",
            "builtin:docker-mcp-gateway",
            "script:sha256:00",
            "url:http://localhost:3000/mcp",
            "url:http://192.168.1.7/mcp",
            "url:http://nas:80/mcp",
            "url:http://[::1]:8443/mcp",
            "deno:http://127.0.0.1/a.ts",
            "oci:localhost/evil",
            "oci:localhost:5000/evil",
            "oci:10.0.0.1:5000/evil",
            "files",
        ] {
            assert!(is_always_weak(key), "{key}");
        }
        for key in [
            "builtin:goose/developer",
            "bin:sha256:00",
            "oci:docker.io/library/files",
            "oci:ghcr.io/acme/files",
            "npm:files",
            "url:https://acme.example/mcp",
            "deno:https://acme.example/tsx",
        ] {
            assert!(!is_always_weak(key), "{key}");
        }
        assert!(is_builtin(Client::Goose, "builtin:goose/developer"));
        assert!(!is_builtin(Client::Cursor, "builtin:goose/developer"));
        assert!(!is_builtin(Client::Goose, "builtin:goose/evil"));
        assert!(!is_builtin(Client::Goose, "builtin:docker-mcp-gateway"));
    }
}

//! Servers that an extension brings along: those of Claude Desktop, and those of Visual Studio Code.
//!
//! ```text
//! Claude Extensions/ID/manifest.json   server.mcp_config ─ from elsewhere (npx, uvx, docker, an address) ──► that one's key
//!                                                        └ out of its own folder, or by its client ────────► ext:ID, always weak
//! Claude Extensions Settings/ID.json   isEnabled: false ──► it is not started
//! extensions/ID-VERSION/package.json   contributes.mcpServerDefinitionProviders ──► ext:PUBLISHER.NAME, always weak
//! ```
//!
//! What an extension has in its folder is more than the one script that a manifest names, and nobody hashes all of it; so its key is what its
//! client calls it, and nothing is approved by it. An extension of an editor says in its code alone which servers there are: a scan, which
//! runs none, says that there may be some, one for each provider that is declared, and never which.
//!
//! Absent on purpose: packages that are not unpacked (`.mcpb`, `.dxt`), which no client starts; which extensions an editor switched off,
//! which stands in a database of the editor's; extensions of an editor without servers.

use super::{LiveServer, Spot, Walk};
use crate::client::Platform;
use crate::disk::Fault;
use crate::hide;
use crate::identity;
use crate::report::{Observation, Pin, Scope, ServerFacts, Transport};
use crate::syntax::{self, Format};
use crate::wire::{is_extension_key, is_shown_name, is_version};
use serde_json::{Map, Value, json};
use std::ffi::OsStr;

/// Where Claude Desktop keeps what a person set of an extension, beside the folder of extensions.
const SETTINGS: &str = "Claude Extensions Settings";
/// What stands for the folder of an extension in its own manifest.
const OWN_FOLDER: &str = "${__dirname}";
/// The member by which an extension of an editor says that it brings servers.
pub(crate) const PROVIDERS: &str = "mcpServerDefinitionProviders";
/// Kinds of keys of what comes from elsewhere: an extension that starts it adds nothing to what it is.
const ELSEWHERE: [&str; 7] = ["npm:", "pypi:", "oci:", "url:", "go:", "deno:", "nuget:"];

/// Says whether a manifest of an editor's extension may name servers, by its bytes: there are dozens of extensions, and few do. A name with
/// escapes in it is one as well.
pub(super) fn may_provide(manifest: &[u8]) -> bool {
    let has = |word: &[u8]| manifest.windows(word.len()).any(|part| part == word);
    has(PROVIDERS.as_bytes()) || has(b"\\u00")
}

impl Walk<'_> {
    /// Reads the manifest of an extension of Claude Desktop; `None` when something has a type that its client does not read.
    pub(super) fn bundle(&mut self, spot: &Spot, scope: Scope, value: &Value) -> Option<()> {
        let id = spot
            .path
            .parent()?
            .file_name()
            .and_then(OsStr::to_str)?
            .to_owned();
        let name = value.get("name")?.as_str()?;
        let server = value.get("server")?.as_object()?;
        let enabled = self.is_switched_on(spot, &id);
        if self.live.is_none() {
            let shown = hide::name(self.key, &id);
            self.note(spot, Observation::Extension { name: shown, enabled });
        }
        let written = match server.get("mcp_config") {
            None | Some(Value::Null) => Map::new(),
            Some(config) => self.on_this_platform(config.as_object()?)?,
        };
        let of_extension = self.of_extension(&id, value.get("version"));
        let written = Value::Object(written);
        let mut facts = if written.as_object().is_some_and(|members| !members.is_empty()) {
            self.facts(spot, scope, name, &written)?
        } else {
            // Its client knows how to start it.
            self.unseen(name, scope, Transport::Stdio)
        };
        let is_from_elsewhere = ELSEWHERE.iter().any(|kind| facts.key.starts_with(kind));
        if !is_from_elsewhere {
            (facts.key, facts.version, facts.version_pin) = of_extension;
            facts.weak = true;
        }
        facts.enabled &= enabled;
        self.take(spot, name.to_owned(), facts, &written);
        Some(())
    }

    /// Reads which servers an extension of an editor says that it may bring; `None` when something has a type that its client does not read.
    pub(super) fn providers(&mut self, spot: &Spot, scope: Scope, value: &Value) -> Option<()> {
        let Some(providers) = value.get("contributes").and_then(|parts| parts.get(PROVIDERS)) else {
            return Some(());
        };
        let providers = providers.as_array()?;
        let text = |member: &str| value.get(member).and_then(Value::as_str);
        let id = format!("{}.{}", text("publisher")?, text("name")?);
        if self.live.is_none() && !providers.is_empty() {
            let name = hide::name(self.key, &id);
            self.note(spot, Observation::Extension { name, enabled: true });
        }
        let mut outcome = Some(());
        for provider in providers {
            if self.disk.is_over() || self.is_full() {
                self.fault(spot, Fault::Truncated);
                break;
            }
            let Some(name) = provider.get("id").and_then(Value::as_str) else {
                outcome = None;
                continue;
            };
            let (key, version, version_pin) = self.of_extension(&id, value.get("version"));
            let facts = ServerFacts {
                key,
                version,
                version_pin,
                ..self.unseen(name, scope, Transport::Builtin)
            };
            self.take(spot, name.to_owned(), facts, &Value::Null);
        }
        outcome
    }

    /// Says whether a person did not switch an extension off. Settings that cannot be read switch off nothing.
    fn is_switched_on(&mut self, spot: &Spot, id: &str) -> bool {
        let Some(settings) = spot.path.ancestors().nth(3).map(|folder| folder.join(SETTINGS)) else {
            return true;
        };
        let path = settings.join(format!("{id}.json"));
        let read = match self.disk.read(&path, &spot.fence, Format::Json.most()) {
            Ok(Some(content)) => syntax::value(&content.bytes, Format::Json, &|| self.disk.is_over()),
            Ok(None) => return true,
            Err(fault) => Err(fault),
        };
        match read {
            Ok(value) => value.get("isEnabled") != Some(&Value::Bool(false)),
            // The file is one of its own kind, and its fault is noted there.
            Err(_) => true,
        }
    }

    /// Returns what is started on the platform of the home: what is said for it stands before what is said for all.
    fn on_this_platform(&self, config: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut written = config.clone();
        let own = match self.platform {
            Platform::Linux => "linux",
            Platform::Macos => "darwin",
            Platform::Windows => "win32",
        };
        match written.remove("platform_overrides") {
            None | Some(Value::Null) => {}
            Some(Value::Object(overrides)) => match overrides.get(own) {
                None | Some(Value::Null) => {}
                Some(Value::Object(overrides)) => written.extend(overrides.clone()),
                Some(_) => return None,
            },
            Some(_) => return None,
        }
        // Where it lies says nothing of what it is: what runs out of it has the extension's key.
        if let Some(Value::Array(words)) = written.get_mut("args") {
            for word in words {
                if word.as_str().is_some_and(|word| word.contains(OWN_FOLDER)) {
                    *word = json!("./own");
                }
            }
        }
        Some(written)
    }

    /// Returns the key of an extension, and its version. One whose name is none, or looks like a value, has a key of this device alone.
    fn of_extension(&self, id: &str, version: Option<&Value>) -> (String, Option<String>, Pin) {
        let key = format!("ext:{}", id.to_lowercase());
        let key = if is_extension_key(&key) {
            key
        } else {
            identity::of_unknown(&["extension", id], self.key).key
        };
        let is_shown = |version: &&str| is_version(version) && is_shown_name(version);
        let version = version.and_then(Value::as_str).filter(is_shown);
        let pin = if version.is_some() { Pin::Exact } else { Pin::None };
        (key, version.map(str::to_owned), pin)
    }

    /// Returns a server of which nothing is written but its name.
    fn unseen(&self, name: &str, scope: Scope, transport: Transport) -> ServerFacts {
        ServerFacts {
            key: identity::of_unknown(&["extension", name], self.key).key,
            configured_name: hide::name(self.key, name),
            scope,
            transport,
            version: None,
            version_pin: Pin::None,
            shape: None,
            weak: true,
            arg_shapes: Vec::new(),
            env_names: Vec::new(),
            header_names: Vec::new(),
            secrets_inline: 0,
            enabled: true,
        }
    }

    fn take(&mut self, spot: &Spot, name: String, facts: ServerFacts, written: &Value) {
        match &mut self.live {
            Some(live) => live.push(LiveServer::of(name, facts, written)),
            None => self.note(spot, Observation::McpServer(facts)),
        }
    }
}

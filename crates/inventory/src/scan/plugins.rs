//! What stands in plugins of Claude Code.

use super::{MAX_PROJECTS, Spot, Walk, spot_like};
use crate::disk::Fault;
use crate::report::Scope;
use crate::syntax::{self, Format};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What stands for the folder of a plugin in its own files.
const ROOT: &str = "${CLAUDE_PLUGIN_ROOT}/";
/// The file of hooks that a plugin has without naming it.
const HOOKS: &str = "hooks/hooks.json";
/// LIMIT: files that a manifest names for servers, and for hooks, and that are read. Ours: a plugin names one or two.
const MAX_NAMED: usize = 20;

/// Reads a part of a file; `None` when something has a type that its client does not read.
type Reader<W> = fn(&mut W, &Spot, Scope, &Value) -> Option<()>;

impl Walk<'_> {
    /// Takes where plugins are installed. Each has one place, or one for each project that has it.
    pub(super) fn installed(&mut self, spot: &Spot, value: &Value) -> Option<()> {
        let mut places = BTreeSet::new();
        for plugin in value.get("plugins")?.as_object()?.values() {
            let each = plugin
                .as_array()
                .map_or(std::slice::from_ref(plugin), Vec::as_slice);
            for one in each {
                places.insert(self.on_disk(one.get("installPath")?.as_str()?));
            }
        }
        while places.len() > MAX_PROJECTS {
            places.pop_last();
            self.fault(spot, Fault::Truncated);
        }
        self.plugins = Some(places);
        Some(())
    }

    /// Reads servers that have the member around them which other files have, or stand without it.
    pub(super) fn unwrapped(&mut self, spot: &Spot, scope: Scope, value: &Value) -> Option<()> {
        if let Some(servers) = value.get("mcpServers") {
            return self.servers(spot, scope, servers);
        }
        // Beside servers may stand the address of a schema.
        let servers = value.as_object()?.iter().filter(|(_, server)| server.is_object());
        let servers = servers.map(|(name, server)| (name.clone(), server)).collect();
        self.named_servers(spot, scope, servers)
    }

    /// Reads the servers and the hooks of a manifest, or of the files that it names.
    pub(super) fn manifest(&mut self, spot: &Spot, scope: Scope, value: &Value) -> Option<()> {
        let servers = value.get("mcpServers").map_or(Some(()), |servers| {
            self.named_or_here(spot, scope, servers, (Self::servers, Self::unwrapped))
        });
        let hooks = value.get("hooks").map_or(Some(()), |hooks| {
            self.named_or_here(spot, scope, hooks, (Self::hooks, Self::hooks_of_file))
        });
        servers.and(hooks)
    }

    fn hooks_of_file(&mut self, spot: &Spot, scope: Scope, value: &Value) -> Option<()> {
        self.hooks(spot, scope, value.get("hooks")?)
    }

    /// Reads what stands in a manifest by the first reader, and the files of the plugin that it names by the second. Whoever made the
    /// plugin is a stranger: what lies elsewhere in the home is not read in its name.
    fn named_or_here(
        &mut self,
        spot: &Spot,
        scope: Scope,
        named: &Value,
        (here, of_file): (Reader<Self>, Reader<Self>),
    ) -> Option<()> {
        let items = match named {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let folder = spot.path.parent()?;
        let root = if folder.ends_with(".claude-plugin") {
            folder.parent()?
        } else {
            folder
        };
        let (mut outcome, mut files) = (Some(()), 0);
        for item in items {
            let read = match item {
                Value::Null => Some(()),
                Value::Object(_) => here(self, spot, scope, item),
                Value::String(path) => {
                    let path = path.strip_prefix(ROOT).unwrap_or(path);
                    let path = path.strip_prefix("./").unwrap_or(path);
                    // This one is read wherever it is.
                    if path != HOOKS {
                        files += 1;
                        if files > MAX_NAMED {
                            self.fault(spot, Fault::Truncated);
                            break;
                        }
                        self.named(spot, (root, path), scope, of_file);
                    }
                    Some(())
                }
                _ => None,
            };
            outcome = outcome.and(read);
        }
        outcome
    }

    /// Reads a file that a manifest names, if it lies in the folder of the plugin.
    fn named(&mut self, manifest: &Spot, (root, path): (&Path, &str), scope: Scope, of_file: Reader<Self>) {
        let mut spot = Spot {
            path: root.join(path),
            ..spot_like(manifest)
        };
        let read = self.disk.resolved(root).and_then(|root| match root {
            Some(root) if root.starts_with(&spot.fence) => {
                spot.fence = root;
                self.disk.read(&spot.path, &spot.fence, Format::Json.most())
            }
            Some(_) => Err(Fault::NotPermitted),
            None => Ok(None),
        });
        let read = match read {
            Ok(Some(content)) => syntax::value(&content.bytes, Format::Json, &|| self.disk.is_over()),
            Ok(None) => return,
            Err(fault) => Err(fault),
        };
        let fault = match read {
            Ok(value) => of_file(self, &spot, scope, &value)
                .is_none()
                .then_some(Fault::Malformed),
            Err(fault) => Some(fault),
        };
        if let Some(fault) = fault {
            self.fault(&spot, fault);
        }
    }
}

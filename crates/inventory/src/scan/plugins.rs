//! What stands in plugins of Claude Code.

use super::{MAX_PROJECTS, Spot, Walk, spot_like};
use crate::disk::Fault;
use crate::report::Scope;
use crate::syntax::{self, Format};
use serde_json::Value;
use std::collections::BTreeSet;

/// What stands for the folder of a plugin in its own files.
const ROOT: &str = "${CLAUDE_PLUGIN_ROOT}/";

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

    /// Reads the servers of a manifest, or of the files that it names.
    pub(super) fn manifest(&mut self, spot: &Spot, scope: Scope, value: &Value) -> Option<()> {
        let Some(named) = value.get("mcpServers") else {
            return Some(());
        };
        let paths = match named {
            Value::String(_) => std::slice::from_ref(named),
            Value::Array(paths) => paths.as_slice(),
            servers => return self.servers(spot, scope, servers),
        };
        let folder = spot.path.parent()?;
        let root = if folder.ends_with(".claude-plugin") {
            folder.parent()?
        } else {
            folder
        };
        for path in paths {
            let path = path.as_str()?;
            let spot = Spot {
                path: root.join(path.strip_prefix(ROOT).unwrap_or(path)),
                ..spot_like(spot)
            };
            self.named(&spot, scope);
        }
        Some(())
    }

    /// Reads a file of servers that a manifest names.
    fn named(&mut self, spot: &Spot, scope: Scope) {
        let read = self.disk.read(&spot.path, &spot.fence, Format::Json.most());
        let read = match read {
            Ok(Some(content)) => syntax::value(&content.bytes, Format::Json, &|| self.disk.is_over()),
            Ok(None) => return,
            Err(fault) => Err(fault),
        };
        let fault = match read {
            Ok(value) => self
                .unwrapped(spot, scope, &value)
                .is_none()
                .then_some(Fault::Malformed),
            Err(fault) => Some(fault),
        };
        if let Some(fault) = fault {
            self.fault(spot, fault);
        }
    }
}

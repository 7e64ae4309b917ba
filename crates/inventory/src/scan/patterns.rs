//! What patterns of paths stand for.

use super::{PLUGINS, Walk};
use crate::disk::Fault;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// LIMIT: folders in folders that `**` stands for. Ours.
pub(super) const MAX_DEPTH: usize = 5;
/// LIMIT: files that one pattern stands for. Ours.
const MAX_MATCHES: usize = 5_000;
/// What marketplaces of plugins have on offer.
const OFFERS: &str = "marketplaces";

impl Walk<'_> {
    /// Finds what a pattern stands for. A folder that cannot be read is a fault, and the next one is gone into.
    pub(super) fn matching(
        &self,
        folder: &Path,
        fence: &Path,
        parts: &[&str],
        depth: usize,
        paths: &mut Vec<PathBuf>,
    ) -> BTreeSet<Fault> {
        let Some((part, rest)) = parts.split_first() else {
            if paths.len() == MAX_MATCHES {
                return BTreeSet::from([Fault::Truncated]);
            }
            paths.push(folder.to_owned());
            return BTreeSet::new();
        };
        if !part.contains('*') {
            return self.matching(&folder.join(part), fence, rest, depth, paths);
        }
        let is_deep = *part == "**";
        // A plugin has folders of anything; elsewhere what lies deeper, or behind a link, was put there to be read, or not to be seen.
        let is_plugin = folder.starts_with(self.home.join(PLUGINS));
        let mut faults = BTreeSet::new();
        if is_deep {
            faults.extend(self.matching(folder, fence, rest, depth, paths));
            if depth == 0 {
                if !is_plugin && self.has_folders(folder, fence) {
                    faults.insert(Fault::Truncated);
                }
                return faults;
            }
        }
        let names = match self.disk.names(folder, fence) {
            Ok(names) => names,
            Err(fault) => {
                faults.insert(fault);
                return faults;
            }
        };
        let (begin, end) = part.split_once('*').unwrap_or_default();
        for name in names {
            if self.disk.is_over() || paths.len() == MAX_MATCHES {
                faults.insert(Fault::Truncated);
                break;
            }
            if is_deep && name == OFFERS && folder.ends_with(PLUGINS) {
                continue;
            }
            let below = folder.join(&name);
            if !is_deep {
                if name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end) {
                    faults.extend(self.matching(&below, fence, rest, depth, paths));
                }
                continue;
            }
            match self.disk.kind(&below) {
                // Links are not walked: they may lead in a circle.
                Ok(kind) if kind.is_symlink() && !is_plugin && self.leads_to_folder(&below) => {
                    faults.insert(Fault::NotPermitted);
                }
                Ok(kind) if kind.is_dir() => {
                    faults.extend(self.matching(&below, fence, parts, depth - 1, paths));
                }
                Ok(_) => {}
                Err(fault) => {
                    faults.insert(fault);
                }
            }
        }
        faults
    }

    /// Says whether there may be folders in a folder.
    fn has_folders(&self, folder: &Path, fence: &Path) -> bool {
        let is_folder = |name: &String| {
            let below = folder.join(name);
            match self.disk.kind(&below) {
                Ok(kind) => kind.is_dir() || (kind.is_symlink() && self.leads_to_folder(&below)),
                Err(_) => true,
            }
        };
        match self.disk.names(folder, fence) {
            Ok(names) => names.iter().any(is_folder),
            Err(_) => true,
        }
    }

    /// Says whether a link may lead to a folder.
    fn leads_to_folder(&self, link: &Path) -> bool {
        match self.disk.resolved(link) {
            Ok(None) => false,
            Ok(Some(path)) => self.disk.kind(&path).is_ok_and(|kind| kind.is_dir()),
            Err(_) => true,
        }
    }
}

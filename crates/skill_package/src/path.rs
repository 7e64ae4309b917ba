//! Which paths a package may hold. Stricter than any one system, so that a package fits on all of them.

use provost_words::text::name_key;
use std::collections::BTreeMap;

/// Names that Windows keeps for devices, with whatever ending.
const RESERVED: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
    "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Returns the path that an archive's name spells, without a leading `./` and a folder's last slash.
///
/// The root itself is the empty path. Length and depth are judged later, when the top folder is known.
///
/// Errors: what is wrong with the name.
pub(super) fn checked(name: &[u8], is_folder: bool) -> Result<String, &'static str> {
    let name = std::str::from_utf8(name).map_err(|_| "the name is not UTF-8")?;
    let mut path = name;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    if is_folder {
        path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() && !name.starts_with('/') || path == "." {
            return Ok(String::new());
        }
    }
    if path.is_empty() {
        return Err("the path is empty or absolute");
    }
    if path.starts_with('/') {
        return Err("the path is absolute");
    }
    path.split('/').try_for_each(component)?;
    Ok(path.to_owned())
}

// INVARIANT SP-1: no component means a parent, a root, a drive or a device on any system.
fn component(name: &str) -> Result<(), &'static str> {
    match name {
        "" => return Err("the path has an empty component"),
        "." => return Err("the path has the component \".\""),
        ".." => return Err("the path leads out of the package (\"..\")"),
        _ => {}
    }
    if name.contains('\\') {
        return Err("the path has a backslash");
    }
    if name.chars().any(is_hidden) {
        return Err("the path has a control character or one that hides text");
    }
    if name.contains(['<', '>', ':', '"', '|', '?', '*']) {
        return Err("the path has one of < > : \" | ? *, which not every system takes in a name");
    }
    if name.ends_with(['.', ' ']) {
        return Err("a name in the path ends with a dot or a space, which not every system keeps");
    }
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    if RESERVED.contains(&plain_digits(stem).to_lowercase().as_str()) {
        return Err("the path has a name that Windows keeps for a device");
    }
    if name.eq_ignore_ascii_case(".git") {
        return Err("version control data (.git) does not belong in a skill");
    }
    Ok(())
}

/// Control characters, separators of lines, and marks that reorder what is shown.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Windows reads `COM¹` as `COM1`.
fn plain_digits(stem: &str) -> String {
    stem.replace('¹', "1").replace('²', "2").replace('³', "3")
}

/// All paths of a package, by what a system that ignores case and composition would call them.
#[derive(Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, (String, bool)>,
}

impl Tree {
    /// Adds a file.
    ///
    /// Errors: with what it collides.
    pub(super) fn add_file(&mut self, path: &str) -> Result<(), String> {
        let parents = path.match_indices('/').map(|(end, _)| &path[..end]);
        for folder in parents {
            self.add_folder(folder)?;
        }
        match self.nodes.insert(name_key(path), (path.to_owned(), true)) {
            None => Ok(()),
            Some((other, _)) if other == path => Err("the path stands in the package twice".into()),
            Some((other, _)) => Err(format!(
                "the path differs from {} by case or composition alone",
                shown(&other)
            )),
        }
    }

    /// Adds one folder; its parents have been added or will be with its files.
    pub(super) fn add_folder(&mut self, path: &str) -> Result<(), String> {
        match self.nodes.get(&name_key(path)) {
            None => {
                self.nodes.insert(name_key(path), (path.to_owned(), false));
                Ok(())
            }
            Some((other, false)) if other == path => Ok(()),
            Some((other, true)) if other == path => Err(format!("{} is a file and a folder", shown(path))),
            Some((other, _)) => Err(format!(
                "the folder {} differs from {} by case or composition alone",
                shown(path),
                shown(other)
            )),
        }
    }
}

/// Returns a path as it may be shown: without what steers a terminal, and not longer than a line.
pub(super) fn shown(path: &str) -> String {
    // LIMIT: 120 characters of a path are enough to find it.
    let mut text: String = path
        .chars()
        .take(120)
        .flat_map(|c| {
            let plain = (!is_hidden(c)).then_some(c);
            let escaped = is_hidden(c).then(|| c.escape_unicode());
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    if path.chars().nth(120).is_some() {
        text.push('…');
    }
    text
}

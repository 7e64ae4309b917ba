//! The pages of the repository are true: whatever a comment cites can be looked up, and every promise has its place and its test.

mod events;
mod invariants;
mod references;

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository; its path begins at the root.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The numbered lines of a page, of comments, and of reasons that attributes give.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let marker = match self.path.rsplit('.').next() {
            Some("rs") => "//",
            Some("sql") => "--",
            Some("toml") => "#",
            _ => "",
        };
        let lines = self.text.lines().enumerate();
        lines.filter_map(move |(index, line)| {
            let line = line.trim();
            let prose = line
                .strip_prefix(marker)
                .or_else(|| Some(line.split_once(" // ")?.1))
                .or_else(|| Some(line.split_once("reason = \"")?.1))?;
            Some((index + 1, prose.trim_start_matches(['/', '!', '-']).trim()))
        })
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Every file of a folder with one of these endings, in the order of the paths. Data and what tools install is left out.
fn sources(folder: &str, endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                let is_ours = !["/target", "/node_modules", "/data", "/corpus"]
                    .iter()
                    .any(|name| path.ends_with(name));
                folders.extend(is_ours.then_some(path));
            } else if endings.iter().any(|ending| path.ends_with(ending)) {
                let text = page(&path);
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

//! Words as names of packages and images, in whatever way somebody writes them.

use crate::launch::base;
use crate::packages::{normalized, oci};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;

/// What stands before the name of a package and says of which kind it is. Longer ones first.
const BEFORE: [&str; 12] = [
    "docker-daemon:",
    "docker://",
    "docker:",
    "oci://",
    "oci:",
    "pkg:npm/",
    "pkg:pypi/",
    "npm:",
    "jsr:",
    "pypi:",
    "pip:",
    "nuget:",
];
/// Folders in which packages, and programs of their names, lie. Some disks take their letters in either case.
const FOLDERS: [&str; 6] = [
    "node_modules",
    ".bin",
    "site-packages",
    "dist-packages",
    "bin",
    "scripts",
];
/// LIMIT: names of kinds within one word, and bytes of a name. Ours, and those of a key; a word that holds more may be any server.
const MOST_NAMES: usize = 64;
const MOST_OF_NAME: usize = 512;
/// LIMIT: parts of a path that are looked at. Ours; the kernel takes no more of two letters each.
const MOST_PARTS: usize = 2_048;
/// Folders of archives in the addresses of npm's registries.
const ARCHIVES: &str = "/-/";

/// Returns the words of a text that may be a command, a line of a shell, an assignment or a document: as they stand there, and as a shell joins them.
pub(super) fn words(text: &str) -> Vec<String> {
    let is_between = |c: char| c.is_whitespace() || c.is_control() || "=,;|&()<>{}[]\"'`\\".contains(c);
    let joined: String = text.chars().filter(|c| !"\"'\\^`".contains(*c)).collect();
    let is_joined_between = |c: char| c.is_whitespace() || c.is_control() || "=,;|&()<>{}[]".contains(c);
    let mut words: Vec<String> = Vec::new();
    for word in text.split(is_between).chain(joined.split(is_joined_between)) {
        if !word.is_empty() && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
        if words.len() > super::MOST_WORDS {
            break;
        }
    }
    words
}

/// Returns the keys of every package and image that a word may name; nothing where it holds more of them than are read.
pub(super) fn keys(word: &str) -> Option<BTreeSet<String>> {
    let mut keys = BTreeSet::new();
    let decoded = percent_decode_str(word).decode_utf8_lossy();
    let is_coded = decoded != word;
    for word in [word, &decoded].into_iter().take(if is_coded { 2 } else { 1 }) {
        named(word, &mut keys);
        let names: Vec<usize> = BEFORE
            .iter()
            .flat_map(|before| word.match_indices(before).map(|(at, _)| at + before.len()))
            .take(MOST_NAMES + 1)
            .collect();
        if names.len() > MOST_NAMES {
            return None;
        }
        for at in names {
            named(&word[at..], &mut keys);
        }
        // A flag of one letter may have its value in the same word.
        if let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.starts_with('-'))
            && let Some((at, _)) = flag.char_indices().nth(1)
        {
            named(&flag[at..], &mut keys);
        }
        let plain = word.replace('\\', "/");
        path(&plain, &mut keys);
        // The last part of a path is the program of a package that was installed by its name.
        if let Some((_, last)) = plain.rsplit_once('/')
            && (plain.starts_with(['/', '~', '.', '$', '%']) || plain.get(1..2) == Some(":"))
        {
            plain_name(last, &mut keys);
        }
        archive(&plain, &mut keys);
    }
    Some(keys)
}

/// Takes the keys of what lies in the folders of packages on a path: as it is written, and where its dots lead.
fn path(plain: &str, keys: &mut BTreeSet<String>) {
    let parts = plain.split('/').filter(|part| !matches!(*part, "" | "."));
    let written: Vec<&str> = parts.take(MOST_PARTS).collect();
    let mut led = Vec::new();
    for part in &written {
        if *part == ".." {
            led.pop();
        } else {
            led.push(*part);
        }
    }
    for parts in [written, led] {
        for (at, _) in parts
            .iter()
            .enumerate()
            .filter(|(_, part)| FOLDERS.iter().any(|folder| part.eq_ignore_ascii_case(folder)))
        {
            let below = &parts[at + 1..];
            plain_name(below.first().unwrap_or(&""), keys);
            npm(&below[..below.len().min(2)].join("/"), keys);
        }
    }
}

/// Takes the keys of a name, which may have a version, a tag or more behind it.
fn named(word: &str, keys: &mut BTreeSet<String>) {
    // No name is longer, and none begins behind it.
    let word = &word[..word.floor_char_boundary(MOST_OF_NAME)];
    // Deno takes `npm:/name` as well.
    let word = word
        .strip_prefix('/')
        .filter(|rest| rest.starts_with('@'))
        .unwrap_or(word);
    npm(word, keys);
    if !word.contains('/') {
        plain_name(word, keys);
    }
    // A digest that is none leaves the name.
    let port = word.replace(":443/", "/");
    let mut images: Vec<&str> = [word, port.as_str()]
        .into_iter()
        .flat_map(|image| [image, image.split('@').next().unwrap_or_default()])
        .collect();
    images.dedup();
    keys.extend(images.into_iter().filter_map(oci).map(|found| found.key));
    let module = word.split('@').next().unwrap_or_default();
    let host = module.split('/').next().unwrap_or_default();
    if host.contains('.') && host.len() < module.len() {
        keys.insert(format!("go:{}", module.to_lowercase()));
    }
}

/// Takes the keys of a name of one part.
fn plain_name(word: &str, keys: &mut BTreeSet<String>) {
    if word.starts_with('-') {
        return;
    }
    let end = |more: &'static str| {
        let is_part = move |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        word.find(|c: char| !is_part(c)).unwrap_or(word.len())
    };
    for name in [word[..end("-_.~")].to_lowercase(), base(word)] {
        let is_name = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b));
        if is_name && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            keys.extend([
                format!("npm:{name}"),
                format!("deno:npm:{name}"),
                format!("nuget:{name}"),
            ]);
        }
    }
    let name = normalized(&word[..end("-_.")]);
    if !name.is_empty() {
        keys.insert(format!("pypi:{name}"));
    }
    // The name of a module of Python is that of its package, and may have more modules below it.
    if let Some((first, _)) = word[..end("-_.")].split_once('.') {
        keys.insert(format!("pypi:{}", normalized(first)));
    }
}

/// Takes the keys of a name with a scope, wherever in the word it ends.
fn npm(word: &str, keys: &mut BTreeSet<String>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let Some((scope, rest)) = word.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) else {
        return;
    };
    let name = &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())];
    if scope.is_empty() || name.is_empty() || !scope.chars().all(is_part) {
        return;
    }
    let (scope, name) = (scope.to_lowercase(), name.to_lowercase());
    for kind in ["npm:", "deno:npm:", "deno:jsr:"] {
        keys.insert(format!("{kind}@{scope}/{name}"));
    }
    // The registry of JSR, as npm reaches it.
    if scope == "jsr"
        && let Some((scope, name)) = name.split_once("__")
    {
        keys.insert(format!("deno:jsr:@{scope}/{name}"));
    }
}

/// Takes the keys of what an archive holds, by the address or the path of it.
fn archive(word: &str, keys: &mut BTreeSet<String>) {
    if let Some((place, _)) = word.rsplit_once(ARCHIVES) {
        let mut parts = place.rsplit('/');
        let (name, scope) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if scope.starts_with('@') {
            npm(&format!("{scope}/{name}"), keys);
        } else {
            plain_name(name, keys);
        }
    }
    let file = word.rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_archive = [".whl", ".tar.gz", ".tgz", ".zip"]
        .iter()
        .any(|end| file.contains(end));
    let version = file
        .char_indices()
        .find(|(at, c)| *c == '-' && file[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    if let Some((at, _)) = version.filter(|_| is_archive) {
        plain_name(&file[..at], keys);
    }
}

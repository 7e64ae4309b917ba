//! What a package is and holds, as it is shown, signed and compared.

use super::File;
use super::front_matter::FrontMatter;
use aws_lc_rs::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A skill's front matter, files and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The skill's name in the registry; that of `SKILL.md` if it fits.
    pub name: String,
    /// What the skill does and when to use it.
    pub description: String,
    /// The licence's name, or the file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What the skill needs around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Whatever its author adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Tools that the skill asks to use without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// The files, in the order of their paths' bytes.
    pub files: Vec<ManifestFile>,
    /// `sha256:` and 64 hex digits; see the module.
    pub digest: String,
}

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestFile {
    /// The path inside of the package, with slashes.
    pub path: String,
    /// Units: bytes.
    pub size_bytes: u64,
    /// SHA-256 of the content, 64 hex digits.
    pub sha256: String,
    /// Whether it is run as a program.
    pub executable: bool,
}

impl Manifest {
    pub(super) fn of(name: String, front_matter: FrontMatter, files: &BTreeMap<String, File>) -> Self {
        let files: Vec<ManifestFile> = files
            .iter()
            .map(|(path, file)| ManifestFile {
                path: path.clone(),
                size_bytes: file.bytes.len() as u64,
                sha256: sha256(&file.bytes),
                executable: file.executable,
            })
            .collect();
        Self {
            name,
            description: front_matter.description,
            license: front_matter.license,
            compatibility: front_matter.compatibility,
            metadata: front_matter.metadata,
            allowed_tools: front_matter.allowed_tools,
            digest: digest_of(&files),
            files,
        }
    }
}

/// Returns the digest that these files have, in the order of their paths' bytes; what somebody sent may claim another.
// INVARIANT SP-3: paths, contents and the executable bits alone, in one order.
pub fn digest_of(files: &[ManifestFile]) -> String {
    let mut listing = String::from("provost-skill 1\n");
    for file in files {
        let mode = if file.executable { "0755" } else { "0644" };
        let _ = writeln!(listing, "{mode} {} {}", file.sha256, file.path);
    }
    format!("sha256:{}", sha256(listing.as_bytes()))
}

/// Returns the SHA-256 of bytes in hex.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, bytes).as_ref() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Says whether this is a skill's name: 1 to 64 of `a-z`, `0-9` and `-`, no hyphen first, last or twice in a row.
///
/// Source: the agent-skills format; D10.1.
pub fn is_valid_name(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= 64 && name.split('-').all(is_word)
}

//! How names become subjects, without storage.

use crate::directory::model::DirectoryId;
use provost_areas_platform::announcements::SubjectKind;
use provost_kernel::text::name_key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// LIMIT: names of one request (specification §8).
pub const MAX_SUBJECTS: usize = 256;
/// LIMIT: characters of a name (D1.10).
const MAX_NAME: usize = 320;

/// A name that is asked for: 1 to 320 characters of any kind (D6.8). Not trimmed, not normalized.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AskedName(String);

impl AskedName {
    /// Returns the name as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for AskedName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        if (1..=MAX_NAME).contains(&text.chars().count()) {
            return Ok(Self(text.into_owned()));
        }
        Err(serde::de::Error::custom("must have 1 to 320 characters"))
    }
}

impl JsonSchema for AskedName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "AskedName".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME })
    }
}

/// One name that is asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct NameQuery {
    /// A login name, or the name of a group or service account.
    pub name: AskedName,
    /// Only subjects of this kind; needed when a name belongs to subjects of several kinds.
    pub kind: Option<SubjectKind>,
    /// Only users and groups of this directory; needed when a name is in several directories.
    pub directory_id: Option<DirectoryId>,
}

/// An active subject that has one of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it is.
    pub kind: SubjectKind,
    /// Its id.
    pub id: String,
    /// Its directory, if it has one.
    pub directory_id: Option<String>,
}

/// A name and the one subject that has it (specification §2.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResolvedSubject")]
pub struct ResolvedName {
    /// What the subject is.
    kind: SubjectKind,
    /// The name, byte by byte as it was asked for.
    name: String,
    /// The subject.
    subject_id: String,
}

/// Returns the asked names that one candidate has, in the order of their first occurrence. `keys` are the folded names
/// in the order of `asked`.
pub fn resolve(
    asked: &[NameQuery],
    keys: &[String],
    found: &HashMap<String, Vec<Candidate>>,
) -> Vec<ResolvedName> {
    let (mut answered, mut items) = (HashSet::new(), Vec::new());
    for (asked, key) in asked.iter().zip(keys) {
        let directory = asked.directory_id.as_ref().map(DirectoryId::as_str);
        let fits = |candidate: &&Candidate| {
            asked.kind.is_none_or(|kind| kind == candidate.kind)
                && (directory.is_none() || directory == candidate.directory_id.as_deref())
        };
        let mut fitting = found.get(key).into_iter().flatten().filter(fits);
        let (Some(subject), None) = (fitting.next(), fitting.next()) else {
            continue;
        };
        if answered.insert((asked.name.as_str(), subject.id.as_str())) {
            items.push(ResolvedName {
                kind: subject.kind,
                name: asked.name.as_str().to_owned(),
                subject_id: subject.id.clone(),
            });
        }
    }
    items
}

/// Returns the folded names in the order of `asked`.
pub fn keys(asked: &[NameQuery]) -> Vec<String> {
    asked.iter().map(|asked| name_key(asked.name.as_str())).collect()
}

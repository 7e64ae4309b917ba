//! A mapping, as it is stored and shown.

use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(MappingId, "idm", "Names the mapping of a word to a user.");

/// LIMIT: mappings of an organization. Ours: several words for each of 50 000 people.
pub const MOST: i64 = 200_000;

/// A word of telemetry and the user whom it means.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Its id.
    pub id: MappingId,
    /// Its place in lists.
    pub seq: i64,
    /// The word as it was mapped.
    pub word: String,
    /// The user.
    pub user_id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last given to somebody.
    pub updated_at: Timestamp,
}

/// A word of telemetry and the user whom it means.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdentityMapping")]
pub struct MappingView {
    id: MappingId,
    /// As it was mapped. An event's word means the user if it is the same in any case and spelling.
    word: String,
    user_id: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Mapping> for MappingView {
    fn from(mapping: Mapping) -> Self {
        Self {
            id: mapping.id,
            word: mapping.word,
            user_id: mapping.user_id,
            created_at: mapping.created_at,
            updated_at: mapping.updated_at,
        }
    }
}

/// The answer of operations on one mapping.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneMapping {
    /// The mapping.
    pub mapping: MappingView,
}

/// The path of operations on one mapping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct MappingPath {
    /// The mapping.
    pub mapping_id: MappingId,
}

//! Who reads the details of what the area does, and what its events say.
//!
//! Operators read which words are mapped to which users.

use super::identities::model::{Mapping, MappingId};
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// A word that stands for a user.
    OfMapping {
        /// The mapping.
        mapping_id: MappingId,
        /// The user.
        user_id: String,
    } like r#"{"mappingId":"idm_01kaf9q2m4x7t8v3c5d6e0g1h2","userId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;
}

impl OfMapping {
    /// Returns the data about a mapping.
    pub fn of(mapping: &Mapping) -> Self {
        Self {
            mapping_id: mapping.id.clone(),
            user_id: mapping.user_id.clone(),
        }
    }
}

provost_kernel::fences! {
    acts Readers::Everybody, [];
    events {
        /// A word of recorded events was mapped to a user.
        MAPPED: OfMapping = "directory.identity.mapped" => Readers::Everybody;
        /// A word of recorded events names nobody any more.
        UNMAPPED: OfMapping = "directory.identity.unmapped" => Readers::Everybody;
    }
}

//! People, groups, service accounts and their tokens.

pub mod account_rights;
pub mod accounts;
pub mod directory;
pub mod directory_import;
pub mod directory_return;
pub mod directory_rights;
pub mod directory_words;
pub mod escalation;
pub mod lost_references;
pub mod model;
pub mod revocation;
pub mod rotation;
pub mod subjects;
pub mod token_scopes;

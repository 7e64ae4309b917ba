#![forbid(unsafe_code)]
//! Areas of who acts: the directory, service accounts, subjects, words of names.

pub mod directory;
pub mod service_accounts;
pub mod subjects;
pub mod words;

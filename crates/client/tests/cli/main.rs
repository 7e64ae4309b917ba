//! The client commands against a real HTTP server of this test that plays prepared answers.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where its ground is missing"
)]

mod access;
mod answers;
mod columns;
mod commands;
mod complete;
mod content;
mod credential_check;
mod directory_import;
mod http;
mod kit;
mod linked;
mod managed_config;
mod managed_import;
mod managed_publish;
mod names;
mod operations;
mod pages;
mod profiles;
mod provost;
mod proxied;
mod refusals;
mod retries;
mod rotation;
mod scan;
mod second_person;
mod secrets;
mod sign_in;
mod signer;
mod skills;
mod slashes;
mod surroundings;
mod tls;
mod writes;

//! The client commands against a real HTTP server of this test that plays prepared answers.

mod answers;
mod commands;
mod http;
mod operations;
mod pages;
mod profiles;
mod provost;
mod refusals;
mod retries;
mod secrets;
mod writes;

#![forbid(unsafe_code)]
//! Tasks of the repository.
fn main() {}

#![forbid(unsafe_code)]
//! Provost.
fn main() {}

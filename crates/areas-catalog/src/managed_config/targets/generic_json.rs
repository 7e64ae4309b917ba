//! Any program that reads JSON. Nothing is known of its members, so only the loss of one is a warning.

use super::weakening::Rule;

/// The enforced file and the defaults file.
pub const FILES: [&str; 2] = ["enforced.json", "defaults.json"];

/// No member has a meaning here.
pub const RULES: &[(&str, Rule)] = &[];

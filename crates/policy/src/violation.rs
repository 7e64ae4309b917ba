//! Every way in which a document breaks a rule, each with the place.
//!
//! INVARIANT PD-1: a definition is refused with all its violations (the first 20 are kept), not only the first.

use std::fmt;

/// LIMIT: violations that are kept; the rest is counted.
pub const VIOLATIONS_KEPT: usize = 20;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON Pointer into the document.
    pub path: String,
    /// What is wrong, as a sentence that its author can act on; it never quotes a value of the document.
    pub message: String,
}

/// All broken rules of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    kept: Vec<Violation>,
    found: usize,
}

impl Violations {
    /// Adds one.
    pub(crate) fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.found += 1;
        if self.kept.len() < VIOLATIONS_KEPT {
            self.kept.push(Violation {
                path: path.into(),
                message: message.into(),
            });
        }
    }

    /// Returns those that were kept, in the order in which they were found.
    pub fn kept(&self) -> &[Violation] {
        &self.kept
    }

    /// Returns how many there are, kept or not.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Returns whether the document breaks no rule.
    pub fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// Returns `value` if no rule is broken.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T, Self> {
        if !self.is_empty() {
            return Err(self);
        }
        value.ok_or_else(|| {
            let mut all = self;
            all.add("", "is not complete");
            all
        })
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.kept.iter().enumerate() {
            let gap = if at == 0 { "" } else { "; " };
            write!(f, "{gap}{}: {}", violation.path, violation.message)?;
        }
        let more = self.found - self.kept.len();
        if more > 0 {
            write!(f, "; {more} more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

/// Returns the pointer to a member.
pub(crate) fn member(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

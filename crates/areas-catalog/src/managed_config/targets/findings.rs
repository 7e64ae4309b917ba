//! What is said of a content, and how much of it at most.

use crate::managed_config::content::Fault;
use crate::managed_config::views::Warning;

/// LIMIT: warnings of one content; one more says how many there are.
const MAX_WARNINGS: usize = 200;
/// LIMIT: bytes of places after which a content gets no more warnings.
const MAX_WARNED: usize = 1 << 20;

/// What was found in a content.
#[derive(Default)]
pub struct Findings {
    /// What the client refuses or leaves out with a complaint.
    pub faults: Vec<Fault>,
    /// What it takes without a word, although it has no effect.
    pub warnings: Vec<Warning>,
    /// Bytes of the places of the warnings.
    warned: usize,
    /// Warnings that there was no room for.
    left_out: usize,
}

impl Findings {
    /// Returns the findings about a content that nothing else is said of.
    pub fn of_faults(faults: Vec<Fault>) -> Self {
        Self {
            faults,
            ..Self::default()
        }
    }

    /// Adds a warning, where there is room for one more. It is made only then: one costs a search.
    pub fn warn(&mut self, warning: impl FnOnce() -> Warning) {
        if self.warnings.len() >= MAX_WARNINGS || self.warned >= MAX_WARNED {
            self.left_out += 1;
            return;
        }
        let warning = warning();
        self.warned += warning.paths.iter().map(String::len).sum::<usize>();
        self.warnings.push(warning);
    }

    /// Adds the warning that says how many there are, where some were left out.
    pub fn close(&mut self) {
        if self.left_out > 0 {
            let (shown, all) = (self.warnings.len(), self.warnings.len() + self.left_out);
            self.warnings.push(Warning {
                code: "more_warnings",
                message: format!("there are {all} warnings; the first {shown} are shown"),
                paths: Vec::new(),
            });
        }
    }
}

//! Two sets over the same events: what both ask is answered once.
//!
//! A candidate is mostly the baseline with a few policies changed: nearly all of its questions are those of the baseline.

use super::batch::Batch;
use super::scan::Scan;
use crate::rego::{InProcess, Runner};
use crate::set::PolicySet;
use crate::symbols::Symbols;

/// The walk of two sets over batches, oldest first.
pub struct Pair<'a> {
    baseline: Scan<'a>,
    candidate: Scan<'a>,
}

impl<'a> Pair<'a> {
    /// Returns a walk that has seen nothing.
    pub fn new(baseline: &'a PolicySet, candidate: &'a PolicySet) -> Self {
        let baseline = Scan::new(baseline);
        Self {
            candidate: Scan::beside(candidate, &baseline),
            baseline,
        }
    }

    /// Returns what the baseline says of the last batch.
    pub fn baseline(&self) -> &Scan<'a> {
        &self.baseline
    }

    /// Returns what the candidate says of the last batch.
    pub fn candidate(&self) -> &Scan<'a> {
        &self.candidate
    }

    /// Decides on a batch with both sets; see [`Scan::judge_until`].
    pub fn judge_until(&mut self, batch: &Batch, symbols: &Symbols, is_over: &dyn Fn() -> bool) -> bool {
        self.judge_by(batch, symbols, &InProcess, is_over)
    }

    /// The same, with modules run by somebody else.
    pub fn judge_by(
        &mut self,
        batch: &Batch,
        symbols: &Symbols,
        modules: &dyn Runner,
        is_over: &dyn Fn() -> bool,
    ) -> bool {
        self.baseline.walk(batch, symbols, modules, is_over, None)
            && self
                .candidate
                .walk(batch, symbols, modules, is_over, Some(&self.baseline))
    }

    /// Goes on with another table of symbols; see [`Scan::renew`].
    pub fn renew(&mut self, old: &Symbols, new: &mut Symbols) {
        self.baseline.renew(old, new);
        self.candidate.renew(old, new);
    }
}

//! Who runs modules: this process, or one that can be ended.
//!
//! A module is code that a stranger wrote. Steps, sizes and the clock end it everywhere alike; a server still runs it where it
//! can be killed, and the simulation and an agent on a device run it in their own process behind the same bounds.

use super::{Module, ModuleAnswer};
use regorus::Value;

/// What a module is asked.
pub struct Question<'a> {
    /// The module.
    pub module: &'a Module,
    pub(crate) input: &'a Value,
    pub(crate) missing: &'a [Vec<String>],
}

impl Question<'_> {
    /// Returns about how many bytes there are of it.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.input.extent().nodes.saturating_mul(64)).unwrap_or(usize::MAX)
    }

    /// Returns what the module says, in this process.
    pub fn ask(&self) -> ModuleAnswer {
        let missing: Vec<Vec<&str>> = self
            .missing
            .iter()
            .map(|path| path.iter().map(String::as_str).collect())
            .collect();
        self.module.ask(self.input, &missing)
    }
}

/// Who runs modules.
pub trait Runner: Sync {
    /// Returns what modules say, in the order of the questions. Fewer answers than questions: there was no time for the rest, or
    /// there is nobody who runs modules at all; what was not asked is unknown.
    fn ask(&self, questions: &[Question<'_>], has_time: &dyn Fn() -> bool) -> Vec<ModuleAnswer>;
}

/// This process.
#[derive(Clone, Copy, Debug)]
pub struct InProcess;

impl Runner for InProcess {
    fn ask(&self, questions: &[Question<'_>], has_time: &dyn Fn() -> bool) -> Vec<ModuleAnswer> {
        let asked = questions.iter().take_while(|_| has_time());
        asked.map(Question::ask).collect()
    }
}

//! What a task says when it cannot go on: one sentence for the person at the terminal.

use std::fmt::{Debug, Display, Formatter};

/// The sentence that ends a task.
pub struct Failure(String);

/// The result of a task or of one of its steps.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Debug for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(self, formatter)
    }
}

/// Says what was being done when an error came up.
pub trait Context<T> {
    fn context(self, doing: impl Display) -> Outcome<T>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, doing: impl Display) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{doing}: {error}")))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, missing: impl Display) -> Outcome<T> {
        self.ok_or_else(|| Failure(missing.to_string()))
    }
}

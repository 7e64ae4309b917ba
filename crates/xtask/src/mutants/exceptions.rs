//! Mutants that no test can tell from the original: they say the same in other words.

/// One of them.
pub struct Exception {
    /// File and change, as `--list` shows them, without line and column.
    pub mutant: &'static str,
    /// The line of the original, without the spaces around it.
    pub line: &'static str,
    pub why: &'static str,
}

pub const EXCEPTIONS: &[Exception] = &[Exception {
    mutant: "crates/server/src/areas/mcp_sessions/model.rs: replace | with ^ in seq",
    line: "i64::try_from((ulid.timestamp_ms() << SEQ_BITS) | chance).map_err(Error::internal)",
    why: "the instant has no bit where the chance has one",
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn the_line_of_every_exception_stands_in_its_file() {
        for exception in EXCEPTIONS {
            let (file, _) = exception.mutant.split_once(": ").unwrap();
            let text = std::fs::read_to_string(process::root().join(file)).unwrap();
            assert!(
                text.lines().any(|line| line.trim() == exception.line),
                "{}: {}",
                exception.mutant,
                exception.line
            );
            assert!(!exception.why.is_empty(), "{}", exception.mutant);
        }
    }
}

//! Whether this process was started with code that is not its own (F4.15): a loader that is told by a variable to bring more along.
//!
//! A hook runs as the person for whom it refuses, and so whoever sets such a variable can have it answer anything. The hook says so to the
//! agent, which counts on it no more; code that was brought along can also keep it from saying so, and nobody who has root finds out. It is
//! evidence of tampering by those who do not hide it, and of a tool that was left there by mistake.
//!
//! Absent on purpose: refusing to answer, which would be the same for whoever brought the code along; `/etc/ld.so.preload`, which is root's.

use std::ffi::OsStr;

/// Variables by which the loaders of Linux and of macOS bring code along, or take the program's own libraries from elsewhere.
const VARIABLES: [&str; 6] = [
    "DYLD_FRAMEWORK_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
];

/// Says whether a variable brings code along.
fn brings(name: &OsStr, value: &OsStr) -> bool {
    !value.is_empty() && VARIABLES.iter().any(|one| name == OsStr::new(one))
}

/// Says whether this process was started so.
pub fn is_preloaded() -> bool {
    std::env::vars_os().any(|(name, value)| brings(&name, &value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_a_loader_brings_along_is_told_by_its_variable() {
        let is = |name: &str, value: &str| brings(OsStr::new(name), OsStr::new(value));
        assert!(is("LD_PRELOAD", "/tmp/x.so") && is("DYLD_INSERT_LIBRARIES", "/tmp/x.dylib"));
        for (name, value) in [
            ("LD_PRELOAD", ""),
            ("LD_DEBUG", "all"),
            ("PATH", "/tmp"),
            ("ld_preload", "x"),
        ] {
            assert!(!is(name, value), "{name}");
        }
    }
}

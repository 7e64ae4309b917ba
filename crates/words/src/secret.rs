//! Values that must never be shown.
//!
//! A `Secret` has no `Display`, no `Serialize`, and prints `…` under `Debug`; it is zeroized when dropped.
//! Whoever needs the value says so with [`Secret::expose`], which makes every use easy to find.

use zeroize::{Zeroize, Zeroizing};

/// A value that is zeroized when dropped and that no formatter shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T: Zeroize>(Zeroizing<T>);

impl<T: Zeroize> Secret<T> {
    /// Takes ownership of a secret value.
    pub fn new(value: T) -> Self {
        Self(Zeroizing::new(value))
    }

    /// Returns the value itself. The caller must not log, format or store it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> std::fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_part_of_the_value() {
        let secret = Secret::new(String::from("hunter2"));
        assert_eq!(format!("{secret:?}"), "…");
        assert_eq!(secret.expose(), "hunter2");
    }
}

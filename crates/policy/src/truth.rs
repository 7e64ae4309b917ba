//! Three-valued truth (Kleene's strong logic): what is not known stays not known unless the rest decides.
//!
//! ```text
//!   and │ F U T     or │ F U T     not
//!   ────┼──────     ───┼──────     ───────
//!    F  │ F F F      F │ F U T     F → T
//!    U  │ F U U      U │ U U T     U → U
//!    T  │ F U T      T │ T T T     T → F
//! ```
//!
//! An attribute has one of three states, and a predicate reads them so:
//!
//! ```text
//!   state     means                                      every operator, `exists` included
//!   present   the request has it; here is its value      true or false, by the value
//!   absent    the request has no such attribute          false (`neq` and `not_in` too)
//!   missing   it has one, but nobody can say its value   unknown
//! ```
//!
//! Absent is not missing: a shell command has no `mcp.server_id`, and a policy about an MCP server does not
//! match it. `neq` on an absent attribute is false as it is undefined in Rego; who means "not this server, or
//! none" writes `not {eq}`.

/// A value of three-valued logic. The order is the one in which `and` is the minimum and `or` the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// It is not so.
    False,
    /// Nobody can say.
    Unknown,
    /// It is so.
    True,
}

impl Truth {
    /// Returns whether both are so.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// Returns whether one of the two is so.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.max(other)
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
            Self::True => Self::False,
        }
    }
}

impl From<bool> for Truth {
    fn from(so: bool) -> Self {
        if so { Self::True } else { Self::False }
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{self, False as F, True as T, Unknown as U};

    #[test]
    fn the_tables_of_the_header_hold() {
        let all = [F, U, T];
        let and = [[F, F, F], [F, U, U], [F, U, T]];
        let or = [[F, U, T], [U, U, T], [T, T, T]];
        for (i, a) in all.into_iter().enumerate() {
            for (j, b) in all.into_iter().enumerate() {
                assert_eq!(a.and(b), and[i][j]);
                assert_eq!(a.or(b), or[i][j]);
            }
        }
        assert_eq!(all.map(|t| !t), [T, U, F]);
        assert_eq!(Truth::from(true), T);
    }
}

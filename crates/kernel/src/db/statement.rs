//! Statements are written once, in lists that tests can walk.

use super::param::Param;

/// One SQL statement of the catalogue.
#[derive(Debug)]
pub struct Statement {
    /// Module and constant; errors and logs name it.
    pub name: &'static str,
    /// The text for SQLite, with `?1 … ?n`.
    pub sqlite: &'static str,
    /// The text for PostgreSQL, with `?1 … ?n` as well; [`to_postgres`] rewrites it.
    pub postgres: &'static str,
    /// Why the statement has no `organization_id` condition, if it has none.
    pub unscoped: Option<&'static str>,
}

/// A statement with its values.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// What to run.
    pub statement: &'static Statement,
    /// The values of `?1 … ?n`.
    pub params: Vec<Param<'a>>,
}

/// Returns the text with `?n` rewritten to `$n`; quoted text and comments stay as they are.
///
/// SQLite cannot be given `$n`: it numbers such parameters by first appearance.
pub fn to_postgres(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(['?', '\'', '"', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let first = rest.as_bytes()[0];
        let taken = match first {
            b'?' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                out.push('$');
                rest = &rest[1..];
                continue;
            }
            // A doubled quote inside quoted text reads as two quoted texts in a row: the same characters.
            b'\'' | b'"' => rest[1..]
                .find(char::from(first))
                .map_or(rest.len(), |end| end + 2),
            b'-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ => 1,
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// Declares the statements of a module and `STATEMENTS`, the list of them; once per module.
///
/// ```
/// provost_kernel::statements! {
///     /// Finds a thing by its id.
///     FIND = "SELECT name FROM things WHERE organization_id = ?1 AND id = ?2";
///     /// Takes one waiting job.
///     CLAIM = { sqlite: "SELECT …", postgres: "SELECT … FOR UPDATE SKIP LOCKED" };
///     /// Forgets what has expired.
///     PRUNE = unscoped("retention is the same for every organization") "DELETE FROM things WHERE …";
/// }
/// # assert_eq!(STATEMENTS.len(), 3);
/// ```
#[macro_export]
macro_rules! statements {
    (@static [$(#[$meta:meta])*] $name:ident, $sqlite:expr, $postgres:expr, $unscoped:expr) => {
        $(#[$meta])*
        #[doc = ""]
        #[doc = concat!("`", $sqlite, "`")]
        pub static $name: $crate::db::Statement = $crate::db::Statement {
            name: concat!(module_path!(), "::", stringify!($name)),
            sqlite: $sqlite,
            postgres: $postgres,
            unscoped: $unscoped,
        };
    };
    (@list [$($done:ident)*]) => {
        /// Every statement of this module, in declared order.
        pub static STATEMENTS: &[&$crate::db::Statement] = &[$(&$done),*];
    };
    (@list [$($done:ident)*] $(#[$meta:meta])* $name:ident =
        unscoped($why:expr) { sqlite: $sqlite:expr, postgres: $postgres:expr $(,)? }; $($rest:tt)*) => {
        $crate::statements!(@static [$(#[$meta])*] $name, $sqlite, $postgres, Some($why));
        $crate::statements!(@list [$($done)* $name] $($rest)*);
    };
    (@list [$($done:ident)*] $(#[$meta:meta])* $name:ident = unscoped($why:expr) $sql:expr; $($rest:tt)*) => {
        $crate::statements!(@static [$(#[$meta])*] $name, $sql, $sql, Some($why));
        $crate::statements!(@list [$($done)* $name] $($rest)*);
    };
    (@list [$($done:ident)*] $(#[$meta:meta])* $name:ident =
        { sqlite: $sqlite:expr, postgres: $postgres:expr $(,)? }; $($rest:tt)*) => {
        $crate::statements!(@static [$(#[$meta])*] $name, $sqlite, $postgres, None);
        $crate::statements!(@list [$($done)* $name] $($rest)*);
    };
    (@list [$($done:ident)*] $(#[$meta:meta])* $name:ident = $sql:expr; $($rest:tt)*) => {
        $crate::statements!(@static [$(#[$meta])*] $name, $sql, $sql, None);
        $crate::statements!(@list [$($done)* $name] $($rest)*);
    };
    ($($all:tt)*) => { $crate::statements!(@list [] $($all)*); };
}

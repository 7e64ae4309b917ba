//! What the entries of the audit log say of rows that decide rights, as areas declare it.

use crate::fence::TargetKind;

/// What an area's entries say of one of its tables, whose rows have their target's id.
#[derive(Debug)]
pub struct Testimony {
    /// The table.
    pub table: &'static str,
    /// Which targets its rows are.
    pub kind: &'static TargetKind,
    /// A column and the value that it has in the rows that are compared; none where all are.
    pub among: Option<(&'static str, i64)>,
    /// What the entries name.
    pub words: &'static [Word],
}

/// A column, and the member of an entry that says what stands in it.
#[derive(Debug)]
pub struct Word {
    /// The column.
    pub column: &'static str,
    /// The member.
    pub path: &'static str,
    /// How the content stands there.
    pub form: Form,
    /// Whether a restore changes the column as well.
    pub is_held: bool,
}

impl Word {
    /// A column whose content stands in the entry.
    pub const fn new(column: &'static str, path: &'static str) -> Self {
        Self::of(column, path, Form::Plain)
    }

    /// A column whose content stands in the entry in a form.
    pub const fn of(column: &'static str, path: &'static str, form: Form) -> Self {
        Self {
            column,
            path,
            form,
            is_held: false,
        }
    }

    /// Of a column that a restore changes as well.
    #[must_use]
    pub const fn held(self) -> Self {
        Self {
            is_held: true,
            ..self
        }
    }
}

/// How a column's content stands in an entry.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// As it is.
    Plain,
    /// As it is, where there is any: it may go without an entry, and never come.
    Given,
    /// A truth value.
    Flag,
    /// Whether there is any.
    Presence,
    /// A list of words between blanks; a word stands for none.
    Words(&'static str),
    /// A JSON document.
    Document,
}

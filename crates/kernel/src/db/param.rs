//! The closed set of values that a statement takes.

use crate::time::Timestamp;
use std::borrow::Cow;
use std::fmt;

/// One bound value. JSON is bound as text.
#[derive(Clone, PartialEq, Eq)]
pub enum Param<'a> {
    /// SQL NULL.
    Null,
    /// TEXT on both engines.
    Text(Cow<'a, str>),
    /// INTEGER or BIGINT.
    Int(i64),
    /// INTEGER 0 or 1 on SQLite, BOOLEAN on PostgreSQL.
    Bool(bool),
    /// BLOB or BYTEA.
    Bytes(Cow<'a, [u8]>),
    /// INTEGER or BIGINT. Units: milliseconds since the Unix epoch, UTC.
    Time(Timestamp),
}

impl Param<'_> {
    /// Returns the same value without a borrow.
    pub fn into_owned(self) -> Param<'static> {
        match self {
            Param::Null => Param::Null,
            Param::Text(text) => Param::Text(Cow::Owned(text.into_owned())),
            Param::Int(int) => Param::Int(int),
            Param::Bool(bool) => Param::Bool(bool),
            Param::Bytes(bytes) => Param::Bytes(Cow::Owned(bytes.into_owned())),
            Param::Time(time) => Param::Time(time),
        }
    }
}

/// Shows the kind only: drivers log parameters, and a parameter may be a secret or personal data.
impl fmt::Debug for Param<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Param::Null => "Null",
            Param::Text(_) => "Text(…)",
            Param::Int(_) => "Int(…)",
            Param::Bool(_) => "Bool(…)",
            Param::Bytes(_) => "Bytes(…)",
            Param::Time(_) => "Time(…)",
        })
    }
}

macro_rules! from {
    ($($type:ty => $value:ident $param:expr;)*) => {
        $(impl<'a> From<$type> for Param<'a> {
            fn from($value: $type) -> Self { $param }
        })*
    };
}

from! {
    &'a str => text Param::Text(Cow::Borrowed(text));
    &'a String => text Param::Text(Cow::Borrowed(text));
    String => text Param::Text(Cow::Owned(text));
    Cow<'a, str> => text Param::Text(text);
    i64 => int Param::Int(int);
    i32 => int Param::Int(int.into());
    u32 => int Param::Int(int.into());
    bool => bool Param::Bool(bool);
    &'a [u8] => bytes Param::Bytes(Cow::Borrowed(bytes));
    &'a Vec<u8> => bytes Param::Bytes(Cow::Borrowed(bytes));
    Vec<u8> => bytes Param::Bytes(Cow::Owned(bytes));
    Timestamp => time Param::Time(time);
}

impl<'a, const N: usize> From<&'a [u8; N]> for Param<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Param::Bytes(Cow::Borrowed(bytes))
    }
}

impl<const N: usize> From<[u8; N]> for Param<'_> {
    fn from(bytes: [u8; N]) -> Self {
        Param::Bytes(Cow::Owned(bytes.to_vec()))
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

/// Borrows the values of a statement: `params![organization, name, now]` is `&[Param; 3]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::db::Param::from($value)),*] };
}

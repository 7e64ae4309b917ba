//! Paging: `limit` and `offset` of the lists that the specification shows, cursors for the others.

use crate::OperationContext;
use crate::error::{Error, Result};
use crate::keys::{Keys, MacPurpose};
use crate::text::IntegerBetween;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// The largest integer that every JSON reader keeps exactly.
const MAX_EXACT: i64 = (1 << 53) - 1;
const MAC_LEN: usize = 16;
/// LIMIT: a cursor has 32 to 107 characters; what is longer than this is not looked at.
const CURSOR_LIMIT: usize = 128;

macro_rules! paging {
    ($name:ident, $doc:literal, $min:literal, $max:expr, $default:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(IntegerBetween<$min, { $max }>);

        impl $name {
            /// Returns the value, if it is one that a caller may ask for.
            pub fn new(value: i64) -> Option<Self> {
                IntegerBetween::new(value).map(Self)
            }

            /// Returns the number.
            pub const fn get(self) -> i64 {
                self.0.get()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                const { Self(IntegerBetween::new($default).expect("a default between the bounds")) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                IntegerBetween::deserialize_either(deserializer).map(Self)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "integer", "minimum": $min, "maximum": $max, "default": $default,
                })
            }
        }
    };
}

paging!(
    Limit,
    "How many items a page has at most: 1–100, 50 when absent.",
    1,
    100,
    50
);
paging!(
    Offset,
    "How many items are skipped: any that JSON can count, 0 when absent (D5.8).",
    0,
    MAX_EXACT,
    0
);

/// Where a list goes on: a position that the caller cannot read as such, forge or carry to another list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Returns the cursor for a position in one list of one organization.
    pub fn issue(keys: &Keys, organization: &str, operation: &str, position: i64) -> Self {
        Self::issue_bytes(keys, organization, operation, &position.to_be_bytes())
    }

    /// Returns the position.
    ///
    /// Errors: `InvalidRequest` when the cursor is forged or belongs to another list.
    pub fn open(&self, keys: &Keys, organization: &str, operation: &str) -> Result<i64> {
        let position = self.open_bytes(keys, organization, operation)?;
        Ok(i64::from_be_bytes(position.try_into().map_err(|_| foreign())?))
    }

    /// As [`Self::issue`], for lists whose positions need more than 64 bits.
    pub fn issue_wide(keys: &Keys, organization: &str, operation: &str, position: u128) -> Self {
        Self::issue_bytes(keys, organization, operation, &position.to_be_bytes())
    }

    /// As [`Self::open`], for a cursor of [`Self::issue_wide`].
    ///
    /// Errors: `InvalidRequest` when the cursor is forged or belongs to another list.
    pub fn open_wide(&self, keys: &Keys, organization: &str, operation: &str) -> Result<u128> {
        let position = self.open_bytes(keys, organization, operation)?;
        Ok(u128::from_be_bytes(position.try_into().map_err(|_| foreign())?))
    }

    /// As [`Self::issue`], for lists whose positions are no number. They have 64 bytes at most.
    pub fn issue_bytes(keys: &Keys, organization: &str, operation: &str, position: &[u8]) -> Self {
        let mac = keys.mac(MacPurpose::Cursor, &parts(organization, operation, position));
        Self(URL_SAFE_NO_PAD.encode([position, &mac[..MAC_LEN]].concat()))
    }

    /// As [`Self::open`], for a cursor of [`Self::issue_bytes`].
    ///
    /// Errors: `InvalidRequest` when the cursor is forged or belongs to another list.
    pub fn open_bytes(&self, keys: &Keys, organization: &str, operation: &str) -> Result<Vec<u8>> {
        let mut position = URL_SAFE_NO_PAD.decode(&self.0).map_err(|_| foreign())?;
        let len = position.len().checked_sub(MAC_LEN).ok_or_else(foreign)?;
        let mac = position.split_off(len);
        let issued = keys.mac(MacPurpose::Cursor, &parts(organization, operation, &position));
        if bool::from(subtle::ConstantTimeEq::ct_eq(&issued[..MAC_LEN], mac.as_slice())) {
            return Ok(position);
        }
        Err(foreign())
    }

    /// Returns the cursor as it stands on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the place where a page of a list begins: the one that the cursor says, or the beginning of the list.
///
/// A list that a filter narrows has another name with each value of it, because a cursor is a place in one list.
///
/// Errors: `InvalidRequest` when the cursor is forged or belongs to another list.
pub fn start(ctx: &OperationContext<'_>, list: &str, cursor: Option<&Cursor>, beginning: i64) -> Result<i64> {
    cursor.map_or(Ok(beginning), |cursor| {
        cursor.open(&ctx.services().keys, ctx.org(), list)
    })
}

/// Cuts off the row that was read beyond a page, and returns the cursor with which the list goes on, if there was one.
pub fn end<T>(
    ctx: &OperationContext<'_>,
    list: &str,
    limit: Limit,
    rows: &mut Vec<T>,
    place: impl FnOnce(&T) -> i64,
) -> Option<Cursor> {
    let shown = cut(rows, limit)?;
    Some(Cursor::issue(&ctx.services().keys, ctx.org(), list, place(shown)))
}

/// Cuts rows to a page, and returns the last one of it if there were more.
fn cut<T>(rows: &mut Vec<T>, limit: Limit) -> Option<&T> {
    let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let goes_on = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| goes_on)
}

/// Declares one page of a list that goes on by cursors, as it stands on the wire: the items under the name that the
/// list gives them, and `nextCursor`.
///
/// ```ignore
/// provost_kernel::page! {
///     /// One page of resources.
///     pub struct ResourcePage {
///         /// The resources, the oldest first.
///         resources: ResourceView,
///     }
/// }
/// ```
#[macro_export]
macro_rules! page {
    ($(#[$of_page:meta])* $sight:vis struct $Page:ident { $(#[$of_items:meta])* $items:ident: $Item:ty $(,)? }) => {
        $(#[$of_page])*
        #[derive(Debug, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(inline)]
        $sight struct $Page {
            $(#[$of_items])*
            $items: Vec<$Item>,
            /// Where the list goes on; absent at its end.
            #[serde(skip_serializing_if = "Option::is_none")]
            next_cursor: Option<$crate::page::Cursor>,
        }
    };
}

fn foreign() -> Error {
    Error::invalid("/query/cursor", "is not a cursor that this list returned")
}

fn parts<'a>(organization: &'a str, operation: &'a str, position: &'a [u8]) -> [&'a [u8]; 3] {
    [organization.as_bytes(), operation.as_bytes(), position]
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if text.is_empty() || text.chars().count() > CURSOR_LIMIT {
            return Err(de::Error::custom("must be a cursor that this list returned"));
        }
        Ok(Self(text.into_owned()))
    }
}

impl JsonSchema for Cursor {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": CURSOR_LIMIT })
    }
}

#[cfg(test)]
mod tests;

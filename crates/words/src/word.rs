//! Enumerations whose values are words on the wire and in the store.

/// Declares an enumeration by the words that stand for its values, with `ALL`, `as_str`, `parse` and `from_store`:
///
/// ```
/// provost_words::word! {
///     /// What somebody may do.
///     pub enum Right {
///         /// To look.
///         Read = "read",
///         /// To change.
///         Write = "write",
///     }
/// }
/// assert_eq!(Right::parse("write"), Some(Right::Write));
/// assert_eq!(serde_json::to_string(&Right::Read).unwrap(), r#""read""#);
/// ```
///
/// The words on the wire and those in the store are written once, so that they cannot differ. A crate that uses it depends on `serde`
/// and `schemars`.
#[macro_export]
macro_rules! word {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[schemars(inline)]
        $(#[$meta])*
        $vis enum $name { $($(#[$of])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every value, in declared order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the word on the wire and in the store.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns what a word stands for; `None` where it stands for nothing.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns what a stored word stands for.
            ///
            /// Errors: `Internal` where it stands for nothing.
            pub fn from_store(word: &str) -> $crate::Result<Self> {
                Self::parse(word)
                    .ok_or_else(|| $crate::Error::internal(concat!("a stored word is no ", stringify!($name))))
            }
        }
    };
}

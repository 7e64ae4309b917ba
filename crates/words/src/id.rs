//! Typed identifiers: `<prefix>_<26 characters>`, a lower-case ULID (D1.1).
//!
//! A path segment that is not a well-formed id names nothing. It becomes the constant `<prefix>_invalid`,
//! which no row can have, so that a malformed id is answered exactly like a well-formed unknown one.

use crate::entropy::UnitRng;
use crate::time::Timestamp;

/// Returns `<prefix>_<ulid>` for an instant and 80 random bits.
pub fn mint(prefix: &str, now: Timestamp, rng: &mut UnitRng) -> String {
    let mut random = [0_u8; 16];
    rng.fill(&mut random[..10]);
    compose(prefix, now, u128::from_le_bytes(random))
}

/// Returns `<prefix>_<ulid>` for an instant and the low 80 bits of `low`.
pub fn compose(prefix: &str, now: Timestamp, low: u128) -> String {
    let ms = u64::try_from(now.as_ms()).unwrap_or(0);
    let mut buffer = [0; ulid::ULID_LEN];
    let text = ulid::Ulid::from_parts(ms, low).array_to_str(&mut buffer);
    text.make_ascii_lowercase();
    format!("{prefix}_{text}")
}

/// Returns the ULID behind a well-formed id of this prefix; anything else is `None`.
pub fn parse(prefix: &str, text: &str) -> Option<ulid::Ulid> {
    let body = text.strip_prefix(prefix)?.strip_prefix('_')?;
    let canonical = body.len() == ulid::ULID_LEN
        && body.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        && body.as_bytes()[0] <= b'7';
    if !canonical {
        return None;
    }
    ulid::Ulid::from_string(body)
        .ok()
        .filter(|id| id.to_string().eq_ignore_ascii_case(body))
}

/// What every typed id can do.
pub trait TypedId: Sized {
    /// The part before the underscore.
    const PREFIX: &'static str;

    /// Returns a new id.
    fn mint(now: Timestamp, rng: &mut UnitRng) -> Self;
}

/// Declares a typed id: `id!(ServiceAccountId, "sa", "A service account.")`.
#[macro_export]
macro_rules! id {
    ($name:ident, $prefix:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Returns the id that `text` spells; malformed text becomes the id of nothing.
            pub fn from_text(text: &str) -> Self {
                match $crate::id::parse($prefix, text) {
                    Some(_) => Self(text.to_owned()),
                    None => Self(concat!($prefix, "_invalid").to_owned()),
                }
            }

            /// Returns the id that a row holds.
            pub fn from_store(text: String) -> Self {
                Self(text)
            }

            /// Returns the id as it stands on the wire and in the store.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::id::TypedId for $name {
            const PREFIX: &'static str = $prefix;

            fn mint(now: $crate::Timestamp, rng: &mut $crate::entropy::UnitRng) -> Self {
                Self($crate::id::mint($prefix, now, rng))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::from_text(&text))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 256 })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    id!(ThingId, "th", "A thing.");

    #[test]
    fn a_minted_id_parses_and_keeps_its_time() {
        let now = Timestamp::from_ms(1_795_144_500_123);
        let id = ThingId::mint(now, &mut UnitRng::new([7; 32]));
        assert_eq!(&id.as_str()[..2], ThingId::PREFIX);
        assert_eq!(id.as_str().len(), 3 + 26);
        assert_eq!(
            parse("th", id.as_str()).map(|u| u.timestamp_ms()),
            Some(1_795_144_500_123)
        );
        assert_eq!(ThingId::from_text(id.as_str()), id);
        assert_eq!(ThingId::from_store(id.as_str().to_owned()), id);
    }

    #[test]
    fn malformed_text_names_nothing() {
        let upper = "th_01KADH5J9V0000000000000000";
        for text in [
            "",
            "th_",
            "sa_01kadh5j9v0000000000000000",
            upper,
            "th_81kadh5j9v0000000000000000",
            "a\0b",
        ] {
            assert_eq!(ThingId::from_text(text).as_str(), "th_invalid", "{text:?}");
        }
    }
}

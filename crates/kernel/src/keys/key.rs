//! One long-lived key and its form on disk.

use crate::error::Result;
use crate::secret::Secret;
use crate::time::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

macro_rules! purposes {
    ($($name:ident $text:literal;)*) => {
        /// What a long-lived key is for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Purpose { $($name,)* }

        impl Purpose {
    /// Purposes that the first stores did not know.
    pub(super) const LATER: &'static [Purpose] = &[Purpose::Signing];

            pub(super) const ALL: &'static [Purpose] = &[$(Purpose::$name,)*];

            pub(super) const fn as_str(self) -> &'static str {
                match self { $(Purpose::$name => $text,)* }
            }
        }
    };
}

purposes! {
    Pepper "pepper";
    Sealing "sealing";
    Audit "audit";
    Request "request";
    Checkpoint "checkpoint";
    Signing "signing";
}

impl Purpose {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|purpose| purpose.as_str() == text)
    }
}

/// A long-lived key. Its bytes are zeroized when it is dropped.
pub(super) struct Key {
    pub(super) purpose: Purpose,
    pub(super) number: u32,
    pub(super) id: String,
    pub(super) created: Timestamp,
    bytes: Secret<[u8; 32]>,
}

/// The key on disk and in an export.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFile {
    pub(super) id: String,
    pub(super) created: Timestamp,
    /// Base64 of 32 bytes.
    key: String,
    /// In an export: that the key waits to be activated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) pending: bool,
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl Key {
    pub(super) fn new(purpose: Purpose, number: u32, created: Timestamp, bytes: [u8; 32]) -> Self {
        Self {
            purpose,
            number,
            id: format!("{}-{number}", purpose.as_str()),
            created,
            bytes: Secret::new(bytes),
        }
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        self.bytes.expose()
    }

    /// Returns `<purpose>/<id>`, the name under which the store knows the key.
    pub(super) fn label(&self) -> String {
        format!("{}/{}", self.purpose.as_str(), self.id)
    }

    pub(super) fn to_file(&self) -> KeyFile {
        KeyFile {
            id: self.id.clone(),
            created: self.created,
            key: STANDARD.encode(self.bytes()),
            pending: false,
        }
    }

    pub(super) fn from_file(file: &KeyFile) -> Result<Self> {
        let Some((purpose, number)) = parse_id(&file.id) else {
            return Err(super::setup(
                "a key in the keys folder has an id that is not understood",
            ));
        };
        let decoded = Zeroizing::new(STANDARD.decode(&file.key).unwrap_or_default());
        let Ok(bytes) = <[u8; 32]>::try_from(decoded.as_slice()) else {
            return Err(super::setup(format!(
                "the key {} is not 32 bytes of base64",
                file.id
            )));
        };
        Ok(Self::new(purpose, number, file.created, bytes))
    }
}

/// Returns the purpose and the number that an id such as `pepper-1` spells.
pub(super) fn parse_id(id: &str) -> Option<(Purpose, u32)> {
    let (purpose, number) = id.split_once('-')?;
    let (purpose, number) = (Purpose::parse(purpose)?, number.parse().ok()?);
    (number > 0 && id == format!("{}-{number}", purpose.as_str())).then_some((purpose, number))
}

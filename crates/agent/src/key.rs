//! The key that a device is, and proofs that it is here (RFC 9449).
//!
//! Keeps AG-2.

use crate::folder::Folder;
use crate::trouble::{ANEW, Cause, Trouble};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_words::Secret;
use provost_words::entropy::Entropy;
use provost_words::time::Timestamp;
use serde_json::json;

const NAME: &str = "device.key";

/// The key.
pub struct DeviceKey(Ed25519KeyPair);

impl std::fmt::Debug for DeviceKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "DeviceKey({})", self.thumbprint())
    }
}

/// What a proof is made for.
pub struct Purpose<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// Its whole URL, without a query.
    pub url: &'a str,
    /// The token that goes along.
    pub token: &'a Secret<String>,
    /// The server's clock, as far as it is known here.
    pub now: Timestamp,
}

impl DeviceKey {
    /// Reads the key; `None` where there is none.
    ///
    /// Errors: folder, when the file is not as it has to be or holds no key.
    pub fn load(folder: &Folder) -> Result<Option<Self>, Trouble> {
        Self::load_as(folder, NAME)
    }

    /// Reads the key of a file; `None` where there is none.
    ///
    /// Errors: as for [`Self::load`].
    pub fn load_as(folder: &Folder, name: &str) -> Result<Option<Self>, Trouble> {
        let Some(bytes) = folder.read(name)? else {
            return Ok(None);
        };
        let text = Secret::new(bytes);
        let seed = URL_SAFE_NO_PAD
            .decode(text.expose().trim_ascii())
            .map(Secret::new);
        let key = seed
            .ok()
            .and_then(|seed| Ed25519KeyPair::from_seed_unchecked(seed.expose()).ok());
        let wrong = || {
            Trouble::new(
                Cause::Folder,
                format!("{} holds no key", folder.file(name).display()),
            )
            .fix(ANEW)
        };
        key.map(Self).map(Some).ok_or_else(wrong)
    }

    /// Reads the key, or makes one. What this returns is on the disk.
    ///
    /// Errors: as for [`Self::load`], and disk.
    pub fn load_or_make(folder: &Folder, entropy: &dyn Entropy) -> Result<Self, Trouble> {
        Self::load_or_make_as(folder, NAME, entropy)
    }

    /// Reads the key of a file, or makes one. What this returns is on the disk.
    ///
    /// Errors: as for [`Self::load_or_make`].
    pub fn load_or_make_as(folder: &Folder, name: &str, entropy: &dyn Entropy) -> Result<Self, Trouble> {
        if let Some(key) = Self::load_as(folder, name)? {
            return Ok(key);
        }
        let seed = Secret::new(entropy.seed().to_vec());
        let text = Secret::new(URL_SAFE_NO_PAD.encode(seed.expose()) + "\n");
        folder.create(name, text.expose().as_bytes())?;
        Self::load_as(folder, name)?
            .ok_or_else(|| Trouble::new(Cause::Disk, "the key that was written is gone"))
    }

    fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// Returns the thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let text = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.public());
        URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
    }

    /// Returns a proof for one request and one token, which serves once.
    pub fn proof(&self, purpose: &Purpose<'_>, entropy: &dyn Entropy) -> String {
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": self.public() });
        let header = json!({ "alg": "EdDSA", "typ": "dpop+jwt", "jwk": jwk });
        let claims = json!({
            "jti": URL_SAFE_NO_PAD.encode(&entropy.seed()[..16]),
            "htm": purpose.method,
            "htu": purpose.url,
            "iat": purpose.now.as_ms().div_euclid(1000),
            "ath": URL_SAFE_NO_PAD.encode(digest(&SHA256, purpose.token.expose().as_bytes())),
        });
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

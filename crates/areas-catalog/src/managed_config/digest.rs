//! The digest of a content, and what of it is shown to whom.
//!
//! A content is hashed whole, with its hidden values, and everybody who reads managed configuration knows the rest of it: the
//! hash of a content with a short secret is a way to try out every secret. So the hash itself is in the signed manifest and in
//! answers to those who read the values anyway. Everybody else sees a keyed hash of it, by which contents can be told apart
//! and found equal, and nothing tried.
//!
//! Keeps MC-12: the digest of a content goes to callers who hold `managed_config:pull`, and to no other; events and
//! audit entries have the keyed one.

use super::PULL;
use super::content::sha256;
use provost_kernel::OperationContext;
use provost_kernel::audit::hex;
use provost_kernel::keys::MacPurpose;

/// The digest of a content, for those who must not try out what it holds.
const CONTENT_DIGEST: MacPurpose = MacPurpose::Own("provost/mac/content-digest/v1");

/// `sha256:` and the hash of a canonical text in lower-case hexadecimal, or what a machine reported in its place.
///
/// It cannot be serialized: each place says which of its forms it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentDigest(String);

impl ContentDigest {
    /// Returns the digest of a canonical text.
    pub fn of(canonical: &str) -> Self {
        Self(format!("sha256:{}", sha256(canonical)))
    }

    /// Returns a digest as it is stored or reported.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the digest itself: for rows, manifests and comparisons.
    pub fn clear(&self) -> &str {
        &self.0
    }

    /// Returns the keyed hash in its place: the same for the same digest of an organization, as long as the key is.
    pub fn keyed(&self, ctx: &OperationContext<'_>) -> String {
        let parts: [&[u8]; 2] = [ctx.org().as_bytes(), self.0.as_bytes()];
        let mac = ctx.services().keys.mac(CONTENT_DIGEST, &parts);
        format!("hmac-sha256:{}", hex(&mac))
    }

    /// Returns what the caller may see.
    pub fn shown(&self, ctx: &OperationContext<'_>) -> String {
        if ctx.actor().permission.scopes.has(PULL) {
            self.0.clone()
        } else {
            self.keyed(ctx)
        }
    }
}

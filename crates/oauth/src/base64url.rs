//! base64url without padding (RFC 7515 §2), in its one canonical form: unused bits are zero, nothing else is skipped.

use crate::error::Refusal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// INVARIANT OA-3: two texts never decode to the same bytes.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Encoding)
}

/// Decodes what is `N` bytes long.
pub(crate) fn decode_exactly<const N: usize>(text: &str) -> Result<[u8; N], Refusal> {
    decode(text)?.try_into().map_err(|_| Refusal::Encoding)
}

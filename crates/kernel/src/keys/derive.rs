//! Key derivation and the framing of what is hashed.

use aws_lc_rs::hkdf;
use zeroize::Zeroizing;

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Returns `N` bytes of HKDF-SHA-256 (RFC 5869). `N` is at most 8160.
pub(super) fn expand<const N: usize>(master: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; N]> {
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(master);
    let mut output = Zeroizing::new([0; N]);
    #[expect(
        clippy::expect_used,
        reason = "HKDF fails only on an output longer than 255 hashes"
    )]
    extracted
        .expand(&[info], Length(N))
        .and_then(|okm| okm.fill(output.as_mut_slice()))
        .expect("a short output");
    output
}

/// Returns the parts, each behind its length in eight bytes, so that no byte can move between parts.
pub(super) fn framed(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let size = parts.iter().map(|part| part.len() + 8).sum();
    let mut bytes = Zeroizing::new(Vec::with_capacity(size));
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expand_answers_the_vectors_of_rfc_5869() {
        let salt: Vec<u8> = (0..=0x0c).collect();
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let okm = expand::<42>(&[0x0b; 22], &salt, &info);
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865";
        assert_eq!(hex(&okm[..]), expected);
        let okm = expand::<42>(&[0x0b; 22], &[], &[]);
        let expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8";
        assert_eq!(hex(&okm[..]), expected);
    }

    #[test]
    fn framing_keeps_the_parts_apart() {
        assert_ne!(framed(&[b"ab", b"c"]), framed(&[b"a", b"bc"]));
        assert_ne!(framed(&[b"ab"]), framed(&[b"ab", b""]));
        assert_eq!(framed(&[b"ab"]).as_slice(), b"\0\0\0\0\0\0\0\x02ab");
    }

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write;
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

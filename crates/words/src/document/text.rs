//! Texts that are written with escapes.

/// Returns the bytes of a text that is written with escapes; a lone surrogate becomes three bytes that no UTF-8 has, so
/// that two texts are the same iff their bytes are.
pub(super) fn unescaped(written: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (letter, after) = escaped.split_at(escaped.len().min(1));
        rest = after;
        match letter {
            "b" => bytes.push(8),
            "f" => bytes.push(12),
            "n" => bytes.push(b'\n'),
            "r" => bytes.push(b'\r'),
            "t" => bytes.push(b'\t'),
            "u" => {
                let mut unit = unit(rest);
                rest = rest.get(4..).unwrap_or_default();
                let low = rest.strip_prefix("\\u").map(self::unit);
                if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (unit, low) {
                    unit = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    rest = rest.get(6..).unwrap_or_default();
                }
                push(&mut bytes, unit);
            }
            // A quote, a slash, a backslash.
            other => bytes.extend_from_slice(other.as_bytes()),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Returns the number of four hexadecimal digits, which the reader has seen there.
fn unit(digits: &str) -> u32 {
    let digits = digits.get(..4).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or(0)
}

fn push(bytes: &mut Vec<u8>, code: u32) {
    if let Some(letter) = char::from_u32(code) {
        bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    // A surrogate: 16 bits in the form that three bytes of UTF-8 have.
    let three = [
        0xe0 | (code >> 12),
        0x80 | ((code >> 6) & 0x3f),
        0x80 | (code & 0x3f),
    ];
    bytes.extend(three.map(|byte| byte.to_le_bytes()[0]));
}

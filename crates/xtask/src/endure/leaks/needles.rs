//! Many secrets, in every form in which one could have got out, looked for in one pass.
//!
//! A form is at least 20 bytes long; what is looked for is its beginning of 8 bytes, by a table, and then the rest.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use crate::clients::administrator::escaped;
use crate::failure::{Context, Outcome};

/// The part of a secret that is looked for: a leak of this much is a leak.
const PART: usize = 24;
const KEY: usize = 8;
const BLOCK: usize = 1 << 20;
const BITS: usize = 24;

struct Form {
    kind: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    pub kind: &'static str,
    pub form: &'static str,
    pub at: u64,
    /// What stands before it, printable.
    pub before: String,
}

#[derive(Default)]
pub struct Needles {
    forms: Vec<Form>,
    by_key: HashMap<[u8; KEY], Vec<usize>>,
    filter: Vec<u64>,
    /// How many secrets there are of each kind.
    pub kinds: std::collections::BTreeMap<&'static str, usize>,
}

impl Needles {
    pub fn len(&self) -> usize {
        self.kinds.values().sum()
    }

    /// Looks for a secret of that kind from now on.
    pub fn add(&mut self, kind: &'static str, secret: &str) {
        *self.kinds.entry(kind).or_default() += 1;
        let part: Vec<u8> = secret.bytes().take(PART).collect();
        for (name, bytes) in forms(&part) {
            let mut key = [0; KEY];
            key.copy_from_slice(&bytes[..KEY]);
            if self.filter.is_empty() {
                self.filter = vec![0; (1 << BITS) / 64];
            }
            let bit = bit_of(key);
            self.filter[bit / 64] |= 1 << (bit % 64);
            let number = self.forms.len();
            let known = self.by_key.entry(key).or_default();
            known.push(number);
            self.forms.push(Form { kind, name, bytes });
        }
    }

    /// Every place in these bytes; `from` is where they begin.
    pub fn search(&self, bytes: &[u8], from: u64, hits: &mut Vec<Hit>) {
        for (at, window) in bytes.windows(KEY).enumerate() {
            let mut key = [0; KEY];
            key.copy_from_slice(window);
            let bit = bit_of(key);
            if self
                .filter
                .get(bit / 64)
                .is_none_or(|word| word & (1 << (bit % 64)) == 0)
            {
                continue;
            }
            for number in self.by_key.get(&key).into_iter().flatten() {
                let form = &self.forms[*number];
                if bytes[at..].starts_with(&form.bytes) {
                    hits.push(Hit {
                        kind: form.kind,
                        form: form.name,
                        at: from + at as u64,
                        before: printable(&bytes[at.saturating_sub(60)..at]),
                    });
                }
            }
        }
    }

    /// Every place in a file, in blocks that overlap by more than the longest form.
    pub fn search_file(&self, path: &Path) -> Outcome<Vec<Hit>> {
        let mut file = std::fs::File::open(path).context(format_args!("cannot read {}", path.display()))?;
        let overlap = self.forms.iter().map(|form| form.bytes.len()).max().unwrap_or(0);
        let (mut block, mut from, mut hits) = (Vec::new(), 0_u64, Vec::new());
        loop {
            let before = block.len();
            let read = file
                .by_ref()
                .take(BLOCK as u64)
                .read_to_end(&mut block)
                .context("cannot read a file")?;
            self.search(&block, from, &mut hits);
            if read == 0 || block.len() == before {
                hits.sort();
                hits.dedup_by(|a, b| (a.at, a.form) == (b.at, b.form));
                return Ok(hits);
            }
            let done = block.len().saturating_sub(overlap + 64);
            from += done as u64;
            block.drain(..done);
        }
    }
}

fn bit_of(key: [u8; KEY]) -> usize {
    let mixed = u64::from_le_bytes(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> (64 - BITS)).unwrap_or(0)
}

fn printable(bytes: &[u8]) -> String {
    let shown = |byte: &u8| {
        if byte.is_ascii_graphic() || *byte == b' ' {
            char::from(*byte)
        } else {
            '.'
        }
    };
    bytes.iter().map(shown).collect()
}

/// The forms of a secret: raw, hexadecimal, base64 at the three alignments, percent-encoded, escaped in JSON.
pub fn forms(secret: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let pairs: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let lower = pairs.concat();
    let every = format!("%{}", pairs.join("%").to_uppercase());
    let text = String::from_utf8_lossy(secret);
    let mut forms = vec![
        ("raw", secret.to_vec()),
        ("hex", lower.clone().into_bytes()),
        ("HEX", lower.to_uppercase().into_bytes()),
        ("percent-encoded", every.into_bytes()),
        ("URL-encoded", escaped(&text).into_bytes()),
        ("JSON with \\/", text.replace('/', "\\/").into_bytes()),
    ];
    for (alignment, name) in [(0, "base64"), (1, "base64 +1"), (2, "base64 +2")] {
        let plain = base64_core(secret, alignment);
        let url: Vec<u8> = plain
            .iter()
            .map(|byte| match byte {
                b'+' => b'-',
                b'/' => b'_',
                other => *other,
            })
            .collect();
        forms.push((name, plain));
        forms.push((name, url));
    }
    forms.sort_by(|a, b| a.1.cmp(&b.1));
    forms.dedup_by(|a, b| a.1 == b.1);
    forms
}

/// The letters of base64 that a secret alone decides when so many bytes stand before it.
fn base64_core(secret: &[u8], alignment: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = std::iter::repeat_n(0, alignment)
        .chain(secret.iter().copied())
        .collect();
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    let first = (alignment * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    (first..last)
        .map(|letter| {
            let value = (0..6).fold(0, |value, n| value << 1 | bit(letter * 6 + n));
            LETTERS[usize::from(value)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_same_letters_at_every_alignment() {
        // Of "secret", "xsecret" and "xxsecret" by the base64 of coreutils.
        assert_eq!(base64_core(b"secret", 0), b"c2VjcmV0");
        assert_eq!(base64_core(b"secret", 1), b"NlY3Jld");
        assert_eq!(base64_core(b"secret", 2), b"zZWNyZX");
    }

    #[test]
    fn every_form_is_found_wherever_it_stands() {
        let secret = "Zx/9+kQ2mN7pR4tV6wY8aB1c";
        let mut needles = Needles::default();
        needles.add("control", secret);
        let path = std::env::temp_dir().join(format!("needles-{}", std::process::id()));
        let all = forms(secret.as_bytes());
        assert!(all.len() >= 9, "{}", all.len());
        for (name, bytes) in all {
            // Across the border of two blocks too.
            for place in [0, 5, BLOCK - 7, BLOCK - 1, BLOCK + 3] {
                let mut text = vec![b'.'; place];
                text.extend(&bytes);
                text.extend(vec![b'.'; 100]);
                std::fs::write(&path, &text).unwrap();
                let hits = needles.search_file(&path).unwrap();
                assert!(
                    hits.iter().any(|hit| hit.at == place as u64),
                    "{name} at {place}: {hits:?}"
                );
            }
        }
        std::fs::write(&path, vec![b'Z'; 5000]).unwrap();
        assert!(needles.search_file(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
    }
}

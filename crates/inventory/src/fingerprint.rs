//! Fingerprints under a key that the organization has, so that equal things are seen to be equal and nobody can try values.

use aws_lc_rs::hmac;
use std::fmt::Write;

/// The key of an organization's inventory.
pub struct InventoryKey(hmac::Key);

impl InventoryKey {
    /// Takes a key.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Returns 128 bits of HMAC-SHA-256 as hexadecimal digits. The label keeps things of different kinds apart.
    pub fn of(&self, label: &str, value: &str) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(label.as_bytes());
        context.update(&[0]);
        context.update(value.as_bytes());
        let mut hex = String::with_capacity(32);
        for byte in context.sign().as_ref().iter().take(16) {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

impl std::fmt::Debug for InventoryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InventoryKey(…)")
    }
}

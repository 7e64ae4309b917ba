//! Which browser this is: a random value in a cookie that no other site can read or set (SI-2).
//!
//! `__Host-` keeps other hosts of the domain from planting one, and needs `Secure`. On the loopback interface over
//! `http:` browsers differ about that, so the cookie has a plain name there; who can reach it owns the machine.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use provost_kernel::{Kernel, Secret};

const SECURE_NAME: &str = "__Host-provost-sign-in";
const PLAIN_NAME: &str = "provost-sign-in";
/// Longer than what is bound to it, which says itself when it ends. Units: seconds.
const LIFETIME_SECS: u32 = 3600;

/// A browser, known or new.
pub struct Browser {
    value: Secret<String>,
    is_secure: bool,
}

impl Browser {
    /// Returns the browser that sent these headers. Two cookies of the name, or a value that is none of ours, are no one.
    pub fn of(kernel: &Kernel, headers: &HeaderMap) -> Option<Self> {
        let is_secure = is_secure(kernel);
        let name = name(is_secure);
        let mut values = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(known, _)| *known == name);
        let (_, value) = values.next()?;
        let is_ours = URL_SAFE_NO_PAD.decode(value).is_ok_and(|bytes| bytes.len() == 32);
        (is_ours && values.next().is_none()).then(|| Self {
            value: Secret::new(value.to_owned()),
            is_secure,
        })
    }

    /// Returns a browser that was not here yet.
    pub fn new(kernel: &Kernel) -> Self {
        let mut bytes = zeroize::Zeroizing::new([0; 32]);
        kernel.rng().fill(bytes.as_mut_slice());
        Self {
            value: Secret::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())),
            is_secure: is_secure(kernel),
        }
    }

    /// Returns the value that things are bound to.
    pub fn value(&self) -> &[u8] {
        self.value.expose().as_bytes()
    }

    /// Returns the header that makes the browser remember who it is.
    pub fn cookie(&self) -> Option<HeaderValue> {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = format!(
            "{}={}; Path=/; Max-Age={LIFETIME_SECS}; HttpOnly; SameSite=Lax{secure}",
            name(self.is_secure),
            self.value.expose()
        );
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_NAME } else { PLAIN_NAME }
}

fn is_secure(kernel: &Kernel) -> bool {
    kernel.settings.public_url.starts_with("https://")
}

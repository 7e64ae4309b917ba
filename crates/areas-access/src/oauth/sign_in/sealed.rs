//! What travels with a browser from one step to the next: encrypted, for one purpose, one browser and ten minutes.
//!
//! The key is derived from the installation's sealing key, so that every server of it opens what another one sealed. What
//! a text is bound to is authenticated with it: a text for another step or another browser does not open, exactly as one
//! that was changed.
//!
//! Keeps SI-2.

use super::browser::Browser;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_kernel::{Error, Kernel, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// From one step to the next. Units: seconds.
const LIFETIME_SECS: i64 = 600;

/// The step that a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A provider is to be chosen.
    Choice,
    /// A provider's answer is awaited: the `state` that it gets.
    Answer,
    /// Consent is asked for.
    Consent,
}

impl Purpose {
    const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Choice => b"choice",
            Self::Answer => b"answer",
            Self::Consent => b"consent",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Content<T> {
    until_ms: i64,
    of: T,
}

/// Seals a value. A URL can hold the text.
pub fn seal<T: Serialize>(kernel: &Kernel, purpose: Purpose, browser: &Browser, of: &T) -> Result<String> {
    let until_ms = kernel.clock.now().plus_secs(LIFETIME_SECS).as_ms();
    let content = serde_json::to_vec(&Content { until_ms, of });
    let content = Zeroizing::new(content.map_err(Error::internal)?);
    let (key, sealed) = kernel
        .keys
        .seal(&place(purpose, browser), &content, &mut kernel.rng())?;
    Ok(format!("{key}.{}", URL_SAFE_NO_PAD.encode(sealed)))
}

/// Opens what [`seal`] returned; `None` when it is no such text, is for another purpose or browser, or is too old.
pub fn open<T: DeserializeOwned>(
    kernel: &Kernel,
    purpose: Purpose,
    browser: &Browser,
    text: &str,
) -> Option<T> {
    let (key, sealed) = text.split_once('.')?;
    let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let opened = kernel.keys.open_sealed(key, &place(purpose, browser), &sealed)?;
    let content: Content<T> = serde_json::from_slice(opened.expose()).ok()?;
    (kernel.latest().as_ms() < content.until_ms).then_some(content.of)
}

fn place(purpose: Purpose, browser: &Browser) -> [&[u8]; 3] {
    [b"oauth/sign-in", purpose.as_bytes(), browser.value()]
}

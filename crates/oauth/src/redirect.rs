//! Where an authorization answer may be sent (RFC 8252, OAuth 2.1 §2.3).
//!
//! A registered URI is matched character by character. On the loopback interface any port matches, for a native
//! client learns its port when it starts (RFC 8252 §7.3). The RFC says so for addresses; here `localhost` counts too,
//! because MCP clients register it, and MCP's specification names it beside HTTPS. Its risk, a name that resolves
//! elsewhere, is one that PKCE bears: a code without its verifier is worth nothing.

use crate::error::Refusal;
use provost_outbound::{Address, characters};

/// Checks a URI that a client registers: `https:`, `http:` on the loopback interface, or a private scheme with a dot
/// in its name (RFC 8252 §7.1: the reversed domain of its owner).
///
/// Errors: `Redirect`, `Url`.
pub fn check(uri: &str) -> Result<(), Refusal> {
    characters(uri)?;
    let (scheme, rest) = uri.split_once(':').ok_or(Refusal::Redirect("it has no scheme"))?;
    match scheme {
        "https" => Ok(Address::parse(uri).map(drop)?),
        "http" if Address::parse(uri)?.is_loopback() => Ok(()),
        "http" => Err(Refusal::Redirect("http: is for the loopback interface alone")),
        _ if is_private(scheme) && rest.starts_with('/') => Ok(()),
        _ => Err(Refusal::Redirect(
            "it needs https:, or a private scheme with a dot and a path",
        )),
    }
}

/// Is `asked` what was registered as `registered`? Cost: a comparison of texts; no network.
pub fn matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return check(asked).is_ok();
    }
    let (Ok(registered), Ok(asked)) = (Address::parse(registered), Address::parse(asked)) else {
        return false;
    };
    let loopback = !registered.is_https && registered.is_loopback();
    loopback
        && Address {
            written_port: None,
            ..registered
        } == Address {
            written_port: None,
            ..asked
        }
}

fn is_private(scheme: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    let labels = scheme.split('.');
    scheme.bytes().all(allowed)
        && scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.contains('.')
        && labels.into_iter().all(|label| !label.is_empty())
}

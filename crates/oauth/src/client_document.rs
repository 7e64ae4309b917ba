//! Clients that are known by a URL (`draft-ietf-oauth-client-id-metadata-document`, D2.7): the client's id is where
//! its metadata is found.
//!
//! The document is what a stranger wrote. It may name itself, its redirect targets and its keys; it grants itself
//! nothing. Whoever shows `name` shows the host of the URL with it. Members that are not read here are ignored,
//! `logo_uri` among them: an image of a stranger is fetched by nobody.

use crate::claims::{self, Payload};
use crate::error::Refusal;
use crate::jwks::KeySet;
use crate::redirect;
use provost_outbound::{Address, Limits};
use std::time::Duration;

/// LIMIT: bytes of a document (D2.7; the draft recommends 5 KB).
pub const MAX_BYTES: usize = 5 * 1024;

/// LIMIT: a document, in 5 s (D2.7).
pub const FETCH: Limits = Limits {
    max_bytes: MAX_BYTES,
    timeout: Duration::from_secs(5),
};

/// How a client proves itself at the token endpoint.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// `none`: a public client, known by its redirect targets alone.
    None,
    /// `private_key_jwt`, with the keys that stand in the document.
    Keys(KeySet),
    /// `private_key_jwt`, with the keys that stand at another `https:` URL.
    KeysAt(String),
}

/// What a client says about itself.
#[derive(Clone, Debug)]
pub struct ClientDocument {
    /// `client_id`: the URL of the document.
    pub client_id: String,
    /// `client_name`.
    pub name: String,
    /// `client_uri`.
    pub uri: Option<String>,
    /// `redirect_uris`, each one checked.
    pub redirect_uris: Vec<String>,
    /// `grant_types`; `authorization_code` when it names none.
    pub grant_types: Vec<String>,
    /// `scope`: the most that the client asks for; `None` when it does not say.
    pub scopes: Option<Vec<String>>,
    /// `token_endpoint_auth_method`, `jwks`, `jwks_uri`.
    pub authentication: Authentication,
}

/// Checks that a URL can be a client's id. A query is refused, which the draft discourages.
///
/// Errors: `Url`.
pub fn check_url(url: &str) -> Result<(), Refusal> {
    let address = Address::parse(url)?;
    if !address.is_https {
        return Err(Refusal::Url("it must begin with https://"));
    }
    if address.path.is_empty() {
        return Err(Refusal::Url("it must have a path"));
    }
    if address.has_dot_segments() {
        return Err(Refusal::Url("its path must have no dot segments"));
    }
    if address.query.is_some() {
        return Err(Refusal::Url("it must have no query"));
    }
    Ok(())
}

/// Returns host and port of an `https:` URL, in one form: what a browser would call its origin.
pub fn origin(url: &str) -> Option<(String, u16)> {
    let address = Address::parse(url).ok().filter(|address| address.is_https)?;
    Some((address.host.to_ascii_lowercase(), address.port()))
}

/// Reads the document that was found at `url`.
///
/// Errors: `Url`, `Json`, `Missing`, `Malformed`, `Document`, `Redirect`, `KeySet`.
pub fn parse(bytes: &[u8], url: &str) -> Result<ClientDocument, Refusal> {
    check_url(url)?;
    if bytes.len() > MAX_BYTES {
        return Err(Refusal::Document("it is larger than 5 KiB"));
    }
    let members = Payload::parse(bytes)?;
    if members.required("client_id")? != url {
        return Err(Refusal::Document("its client_id is not its URL"));
    }
    if ["client_secret", "client_secret_expires_at"]
        .iter()
        .any(|name| members.get(name).is_some())
    {
        return Err(Refusal::Document("it must hold no secret"));
    }
    let grant_types = members
        .texts("grant_types")?
        .unwrap_or_else(|| vec!["authorization_code".to_owned()]);
    let redirect_uris = members.texts("redirect_uris")?.unwrap_or_default();
    for uri in &redirect_uris {
        redirect::check(uri)?;
    }
    if redirect_uris.is_empty() && grant_types.iter().any(|grant| grant == "authorization_code") {
        return Err(Refusal::Missing("redirect_uris"));
    }
    let uri = members.text("client_uri")?;
    if let Some(uri) = &uri
        && !Address::parse(uri).is_ok_and(|address| address.is_https)
    {
        return Err(Refusal::Malformed("client_uri"));
    }
    Ok(ClientDocument {
        client_id: url.to_owned(),
        name: members.required("client_name")?,
        uri,
        redirect_uris,
        grant_types,
        scopes: members
            .text("scope")?
            .map(|words| claims::scopes(&words))
            .transpose()?,
        authentication: authentication(&members)?,
    })
}

/// An absent method is `none`: RFC 7591 would have a secret, which nobody could have shared.
fn authentication(members: &Payload) -> Result<Authentication, Refusal> {
    match members.text("token_endpoint_auth_method")?.as_deref() {
        None | Some("none") => return Ok(Authentication::None),
        Some("private_key_jwt") => {}
        Some(_) => {
            return Err(Refusal::Document(
                "its token_endpoint_auth_method is not none or private_key_jwt",
            ));
        }
    }
    match (members.get("jwks"), members.text("jwks_uri")?) {
        (Some(keys), None) => {
            let keys = KeySet::from_object(keys.as_object().ok_or(Refusal::Malformed("jwks"))?)?;
            if keys.is_empty() {
                return Err(Refusal::Document("it has no key that can be used"));
            }
            Ok(Authentication::Keys(keys))
        }
        (None, Some(url)) if Address::parse(&url)?.is_https => Ok(Authentication::KeysAt(url)),
        (None, Some(_)) => Err(Refusal::Url("it must begin with https://")),
        _ => Err(Refusal::Document("it needs one of jwks and jwks_uri")),
    }
}

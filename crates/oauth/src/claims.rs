//! Claims: how they are read, and those of an access token.
//!
//! INVARIANT OA-5: what would narrow a token and is not understood refuses it.

use crate::base64url;
use crate::error::Refusal;
use crate::json::{self, Object};
use provost_outbound::is_same_url;
use serde_json::Value;

/// Seconds by which clocks may differ (D2.6).
pub const LEEWAY_SECS: i64 = 60;
/// LIMIT: characters of a claim's text.
pub const MAX_TEXT: usize = 512;
/// LIMIT: characters and bytes of a client's id, which may be a URL: what a filter for it takes. A longer one is refused, for
/// two that begin alike are two.
pub const MAX_CLIENT_ID: usize = 2048;
/// LIMIT: characters of an address of mail: 64 before the sign, 255 behind it.
const MAX_EMAIL: usize = 320;
/// LIMIT: audiences of a token.
pub const MAX_AUDIENCES: usize = 16;
/// LIMIT: scopes of a token; all scopes of the product are fewer.
pub const MAX_SCOPES: usize = 128;

/// What an accepted access token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `iss`: the URL of a pinned issuer.
    pub issuer: String,
    /// `sub`: the user or the client, unique at the issuer.
    pub subject: String,
    /// `client_id`: the program that acts.
    pub client_id: String,
    /// `organization_id`: the one organization that the token serves.
    pub organization: String,
    /// `scope`, without repetitions; none means that nothing may be done.
    pub scopes: Vec<String>,
    /// `aud`: the resources that the token serves.
    pub audiences: Vec<String>,
    /// `iat`. Units: seconds since the Unix epoch, UTC, as all instants here.
    pub issued_at: i64,
    /// `nbf`.
    pub not_before: Option<i64>,
    /// `exp`: the first second at which the token is expired, leeway apart.
    pub expires_at: i64,
    /// `jti`: unique at the issuer.
    pub id: String,
    /// `sid`: the session at the issuer.
    pub session: Option<String>,
    /// `cnf`: what the sender must prove to hold.
    pub confirmation: Option<Confirmation>,
    /// `act.sub`: who acts for the subject.
    pub actor: Option<String>,
}

/// What the sender of a token must prove to hold (RFC 7800).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// `jkt`: the key with this thumbprint (RFC 9449 §6.1).
    Jkt(String),
    /// `x5t#S256`: the certificate with this digest (RFC 8705 §3.1).
    CertificateSha256(String),
}

/// Members of an object that are read strictly.
pub(crate) struct Payload(Object);

impl Payload {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        json::object(bytes).map(Self)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(crate) fn into_members(self) -> Object {
        self.0
    }

    /// Reads a text of 1 to 512 characters without control characters.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.0.get(name).map(|value| short(value, name)).transpose()
    }

    pub(crate) fn required(&self, name: &'static str) -> Result<String, Refusal> {
        self.text(name)?.ok_or(Refusal::Missing(name))
    }

    /// Reads a client's id, whole.
    pub(crate) fn client_id(&self, name: &'static str) -> Result<Option<String>, Refusal> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        let text = value.as_str().ok_or(Refusal::Malformed(name))?;
        let fits = !text.is_empty() && text.len() <= MAX_CLIENT_ID && !text.chars().any(char::is_control);
        fits.then(|| Some(text.to_owned()))
            .ok_or(Refusal::Malformed(name))
    }

    /// Reads a URL, which has its own limit.
    pub(crate) fn long_text(&self, name: &'static str) -> Result<Option<String>, Refusal> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(Refusal::Malformed(name)),
        }
    }

    /// Reads a list of 1 to 16 texts.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Option<Vec<String>>, Refusal> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::Array(all)) if (1..=MAX_AUDIENCES).contains(&all.len()) => all
                .iter()
                .map(|one| short(one, name))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(Refusal::Malformed(name)),
        }
    }

    /// Reads an instant: a whole number of seconds that is not negative.
    pub(crate) fn instant(&self, name: &'static str) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        let seconds = value.as_i64().filter(|seconds| *seconds >= 0);
        seconds.map(Some).ok_or(Refusal::Malformed(name))
    }

    pub(crate) fn required_instant(&self, name: &'static str) -> Result<i64, Refusal> {
        self.instant(name)?.ok_or(Refusal::Missing(name))
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<Option<bool>, Refusal> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(Refusal::Malformed(name)),
        }
    }

    /// Reads the address that the issuer vouches for.
    pub(crate) fn verified_email(&self) -> Option<String> {
        verified_email(&self.0)
    }

    /// Reads `aud`: one text, or a list of 1 to 16.
    pub(crate) fn audiences(&self) -> Result<Vec<String>, Refusal> {
        match self.0.get("aud") {
            Some(Value::Array(_)) => self.texts("aud")?.ok_or(Refusal::Missing("aud")),
            _ => Ok(vec![self.required("aud")?]),
        }
    }

    /// Reads `scope`: words with one space between them (RFC 6749 §3.3); without it there are none.
    pub(crate) fn scopes(&self) -> Result<Vec<String>, Refusal> {
        const MALFORMED: Refusal = Refusal::Malformed("scope");
        match self.0.get("scope") {
            None => Ok(Vec::new()),
            Some(Value::String(words)) if words.is_empty() => Ok(Vec::new()),
            Some(Value::String(words)) => scopes(words),
            Some(_) => Err(MALFORMED),
        }
    }

    /// Reads `iat`, `nbf` and `exp`, and checks them against `now`.
    pub(crate) fn period(&self, now: i64, longest_secs: i64) -> Result<Period, Refusal> {
        let issued_at = self.required_instant("iat")?;
        let not_before = self.instant("nbf")?;
        let expires_at = self.required_instant("exp")?;
        Period {
            issued_at,
            not_before,
            expires_at,
        }
        .check(now, longest_secs)
    }

    /// Reads what limits a token beside its scopes and audiences: `cnf`, and nothing else that could be obeyed here.
    ///
    /// Errors: `Malformed`; `Limit` for `authorization_details` (RFC 9396 §9.1), which say on which records and by which
    /// actions the scopes may be used.
    pub(crate) fn limits(&self) -> Result<Option<Confirmation>, Refusal> {
        const MALFORMED: Refusal = Refusal::Malformed("cnf");
        self.must_lack("authorization_details")?;
        let Some(value) = self.0.get("cnf") else {
            return Ok(None);
        };
        let members = value.as_object().ok_or(MALFORMED)?;
        // INVARIANT OA-5: a token that is bound to what cannot be checked here is not accepted as if it were not
        // bound.
        let mut members = members.iter();
        let (Some((name, Value::String(digest))), None) = (members.next(), members.next()) else {
            return Err(MALFORMED);
        };
        base64url::decode_exactly::<32>(digest).map_err(|_| MALFORMED)?;
        match name.as_str() {
            "jkt" => Ok(Some(Confirmation::Jkt(digest.clone()))),
            "x5t#S256" => Ok(Some(Confirmation::CertificateSha256(digest.clone()))),
            _ => Err(MALFORMED),
        }
    }

    /// Refuses a claim that limits what its bearer may do, and is not understood here: to pass it over would be to grant
    /// more than the issuer did (OA-5).
    pub(crate) fn must_lack(&self, name: &'static str) -> Result<(), Refusal> {
        if self.0.contains_key(name) {
            return Err(Refusal::Limit(name));
        }
        Ok(())
    }

    /// Reads `act.sub`; the actors before it are not told.
    pub(crate) fn actor(&self) -> Result<Option<String>, Refusal> {
        let Some(actor) = self.0.get("act") else {
            return Ok(None);
        };
        let subject = actor.as_object().and_then(|actor| actor.get("sub"));
        short(subject.ok_or(Refusal::Malformed("act"))?, "act").map(Some)
    }
}

/// When a token is valid.
#[derive(Clone, Copy)]
pub(crate) struct Period {
    pub(crate) issued_at: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) expires_at: i64,
}

impl Period {
    fn check(self, now: i64, longest_secs: i64) -> Result<Self, Refusal> {
        let soon = now.saturating_add(LEEWAY_SECS);
        if now.saturating_sub(LEEWAY_SECS) >= self.expires_at {
            return Err(Refusal::Expired);
        }
        if self.issued_at > soon || self.not_before.is_some_and(|instant| instant > soon) {
            return Err(Refusal::NotYetValid);
        }
        let secs = self.expires_at.saturating_sub(self.issued_at);
        if secs <= 0 || secs > longest_secs {
            return Err(Refusal::Lifetime);
        }
        Ok(self)
    }
}

/// Says whether one of the audiences of a token is one of these.
pub(crate) fn is_for(named: &[String], audiences: &[&str]) -> bool {
    let is_ours = |name: &String| audiences.iter().any(|ours| is_same_url(ours, name));
    named.iter().any(is_ours)
}

fn short(value: &Value, name: &'static str) -> Result<String, Refusal> {
    let text = value.as_str().ok_or(Refusal::Malformed(name))?;
    let fits = !text.is_empty() && text.chars().count() <= MAX_TEXT && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned()).ok_or(Refusal::Malformed(name))
}

/// Returns the address that verified claims vouch for: `email_verified` is `true` or the text `"true"`, which some issuers send.
/// Anything else vouches for nothing, and refuses nobody: whoever is linked by their subject needs no address.
pub fn verified_email(claims: &Object) -> Option<String> {
    let is_verified = match claims.get("email_verified")? {
        Value::Bool(flag) => *flag,
        Value::String(text) => text == "true",
        _ => false,
    };
    let email = claims.get("email")?.as_str()?;
    let fits =
        !email.is_empty() && email.chars().count() <= MAX_EMAIL && !email.chars().any(char::is_control);
    (is_verified && fits).then(|| email.to_owned())
}

/// Reads the words of a scope, each once.
///
/// Errors: `Malformed("scope")` for an empty word, a character that RFC 6749 §3.3 excludes, or more than 128 words.
pub fn scopes(words: &str) -> Result<Vec<String>, Refusal> {
    let mut scopes: Vec<String> = Vec::new();
    for word in words.split(' ') {
        let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if word.is_empty() || !word.bytes().all(allowed) || scopes.len() == MAX_SCOPES {
            return Err(Refusal::Malformed("scope"));
        }
        if !scopes.iter().any(|known| known == word) {
            scopes.push(word.to_owned());
        }
    }
    Ok(scopes)
}

//! The token endpoint (RFC 6749, RFC 7009), as far as this program asks it.

use super::super::failure::{Exit, Failure};
use super::super::profile::SignIn;
use super::super::server::{Call, Reply, Server, Silence};
use super::super::trouble::Trouble;
use http::{HeaderMap, HeaderValue, Method, header};
use provost_words::Secret;
use provost_words::time::Timestamp;
use provost_words::url::encoded;
use serde_json::Value;

const TOKEN: &str = "/oauth/token";
const REVOKE: &str = "/oauth/revoke";
/// The id of this program at every server.
pub(super) const CLIENT_ID: &str = "provost-cli";

/// What a server gave.
pub(in crate::cli) struct Tokens {
    pub(in crate::cli) access: Secret<String>,
    pub(in crate::cli) sign_in: SignIn,
}

/// Asks for tokens.
///
/// Errors: why there is no answer; a refusal is `Silence::Refused`, in the words of the server.
pub(super) async fn asked(
    server: &Server,
    fields: &[(&str, &str)],
    now: Timestamp,
) -> Result<Tokens, Silence> {
    let reply = server.ask_as_nobody(&form(TOKEN, fields)).await?;
    if reply.status.is_success() {
        return read(&reply, now).ok_or_else(|| {
            let line = format!("{} gave tokens that cannot be read", server.url());
            Silence::Refused(Failure::new(Exit::ServerFault, line))
        });
    }
    Err(refused(&reply, server.url()))
}

fn read(reply: &Reply, now: Timestamp) -> Option<Tokens> {
    let answer: Value = serde_json::from_slice(&reply.body).ok()?;
    let secret = |member: &str| {
        let text = answer.get(member)?.as_str()?;
        super::super::connection::checked_token(text)
    };
    if !answer.get("token_type")?.as_str()?.eq_ignore_ascii_case("bearer") {
        return None;
    }
    Some(Tokens {
        access: secret("access_token")?,
        sign_in: SignIn {
            refresh_token: secret("refresh_token")?,
            expires_at: now.plus_secs(answer.get("expires_in")?.as_i64()?),
            began_at: Some(now),
        },
    })
}

/// Says what a refusal means. What can be asked again in a moment was not sent, as far as the request behind it is concerned.
fn refused(reply: &Reply, url: &str) -> Silence {
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let text = |member: &str| answer.get(member).and_then(Value::as_str).unwrap_or_default();
    let (error, says) = (text("error"), text("error_description"));
    let is_temporary = matches!(reply.status.as_u16(), 429 | 500..=599)
        || matches!(error, "temporarily_unavailable" | "slow_down");
    if is_temporary {
        return Silence::NobodyThere(Trouble::new(format!("no token is given out now: {says}")));
    }
    let line = match (error, says) {
        ("", _) => format!("{url} answered {} where tokens are given", reply.status),
        (error, "") => error.to_owned(),
        (_, says) => says.to_owned(),
    };
    Silence::Refused(Failure::new(Exit::Forbidden, line))
}

/// Gives a sign-in back: its session ends, with everything that it gave.
///
/// Errors: why it goes on.
pub(in crate::cli) async fn revoke(server: &Server, sign_in: &SignIn) -> Result<(), Silence> {
    let fields = [
        ("client_id", CLIENT_ID),
        ("token", sign_in.refresh_token.expose().as_str()),
    ];
    let reply = server.ask_as_nobody(&form(REVOKE, &fields)).await?;
    if reply.status.is_success() {
        Ok(())
    } else {
        Err(refused(&reply, server.url()))
    }
}

fn form(path: &str, fields: &[(&str, &str)]) -> Call {
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    Call {
        method: Method::POST,
        target: path.to_owned(),
        headers,
        body: Some(pairs.collect::<Vec<_>>().join("&").into()),
        is_download: false,
    }
}

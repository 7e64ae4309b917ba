//! Where and how a token is had: the member `authentication` (D11.2, client contract §4.2).

use super::model::Kind;
use crate::resources::definition::{AtMost, Breaches, SingleLine};
use crate::resources::model::is_host_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The member as a client writes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AuthenticationBody {
    /// For `aws_rds_iam`: the database's region.
    region: Option<SingleLine<1, 32>>,
    /// For `aws_rds_iam`: the role to be assumed.
    role_arn: Option<SingleLine<1, 2048>>,
    /// For the OAuth kinds: https and a host name, without user, query or fragment.
    token_endpoint: Option<SingleLine<1, 2048>>,
    /// For the OAuth kinds; empty is none.
    client_id: Option<SingleLine<0, 1024>>,
    /// For the OAuth kinds.
    audience: Option<SingleLine<1, 2048>>,
    /// For the OAuth kinds.
    scopes: Option<AtMost<SingleLine<1, 256>, 64>>,
}

/// The member as it is stored and answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResourceCredentialAuthentication")]
pub struct Authentication {
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
}

/// Whether a kind must, may or must not have a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberRule {
    Must,
    May,
    Not,
}

impl AuthenticationBody {
    /// Notes what of the member does not go with the kind.
    pub fn judge(given: Option<&Self>, kind: Kind, breaches: &mut Breaches) {
        use MemberRule::{May, Must, Not};
        let [region, role_arn, token_endpoint, client_id, audience, scopes] = match kind {
            Kind::AwsRdsIam => [Must, May, Not, Not, Not, Not],
            Kind::Oauth2ClientCredentials => [Not, Not, Must, Must, May, May],
            Kind::Oauth2TokenExchange => [Not, Not, Must, May, May, May],
            Kind::UsernamePassword | Kind::BearerToken | Kind::Header => {
                breaches.unless(given.is_none(), "/authentication", "does not belong to this kind");
                return;
            }
        };
        let Some(given) = given else {
            breaches.add("/authentication", "is required for this kind");
            return;
        };
        let has_client = given.client_id.as_ref().is_some_and(|id| !id.as_str().is_empty());
        for (path, has, is_there) in [
            ("/authentication/region", region, given.region.is_some()),
            ("/authentication/roleArn", role_arn, given.role_arn.is_some()),
            (
                "/authentication/tokenEndpoint",
                token_endpoint,
                given.token_endpoint.is_some(),
            ),
            ("/authentication/clientId", client_id, has_client),
            ("/authentication/audience", audience, given.audience.is_some()),
            ("/authentication/scopes", scopes, given.scopes.is_some()),
        ] {
            breaches.unless(is_there || has != Must, path, "is required for this kind");
            breaches.unless(!is_there || has != Not, path, "does not belong to this kind");
        }
        if let Some(endpoint) = &given.token_endpoint {
            breaches.unless(
                is_token_endpoint(endpoint.as_str()),
                "/authentication/tokenEndpoint",
                "must be an https URL with a host name, without user, query or fragment",
            );
        }
    }

    /// Returns what is kept of the member.
    pub fn stored(&self) -> Authentication {
        let owned = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Authentication {
            region: self.region.as_ref().and_then(|t| owned(t.as_str())),
            role_arn: self.role_arn.as_ref().and_then(|t| owned(t.as_str())),
            token_endpoint: self.token_endpoint.as_ref().and_then(|t| owned(t.as_str())),
            client_id: self.client_id.as_ref().and_then(|t| owned(t.as_str())),
            audience: self.audience.as_ref().and_then(|t| owned(t.as_str())),
            scopes: self
                .scopes
                .as_ref()
                .map(|scopes| scopes.iter().map(|scope| scope.as_str().to_owned()).collect()),
        }
    }
}

/// Says whether a text is `https://host[:port][/path]`. The host is a name: an address here would let a
/// definition aim the gateway at a machine inside.
pub fn is_token_endpoint(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://") else {
        return false;
    };
    let is_plain =
        |b: u8| b.is_ascii_graphic() && !matches!(b, b'@' | b'?' | b'#' | b'\\' | b'"' | b'<' | b'>');
    if !rest.bytes().all(is_plain) {
        return false;
    }
    let authority = rest.split('/').next().unwrap_or("");
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_port =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0);
    is_host_name(host) && port.is_none_or(is_port)
}

/// Says whether a text is the name of a header that a credential may set: not one that frames the request.
pub fn is_header_name(text: &str) -> bool {
    const FRAMING: [&str; 8] = [
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
    ];
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    text.bytes().all(is_token) && !FRAMING.iter().any(|name| text.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_endpoints_are_https_with_a_host_name() {
        for good in [
            "https://login.example.com/oauth2/token",
            "https://login.example.com:8443/t",
            "https://idp",
        ] {
            assert!(is_token_endpoint(good), "{good}");
        }
        for bad in [
            "http://login.example.com/token",
            "https://10.0.0.1/token",
            "https://[::1]/token",
            "https://2130706433/token",
            "https://0x7f.1/token",
            "https://user@login.example.com/token",
            "https://login.example.com/token?x=1",
            "https://login.example.com/token#x",
            "https://login.example.com:0/token",
            "https://login.example.com:99999/token",
            "https://login.example.com\\@evil.example/token",
            "https:///token",
            "https://",
            "login.example.com",
        ] {
            assert!(!is_token_endpoint(bad), "{bad}");
        }
    }

    #[test]
    fn headers_that_frame_a_request_are_no_credentials() {
        assert!(is_header_name("X-Api-Key") && is_header_name("authorization"));
        for bad in [
            "Host",
            "content-length",
            "a b",
            "a:b",
            "Transfer-Encoding",
            "x\u{e4}",
        ] {
            assert!(!is_header_name(bad), "{bad}");
        }
    }
}

//! Secrets in requests that go wrong: broken bodies, wrong places, tokens that are none, tools, the endpoints of OAuth.

use serde_json::json;

use super::super::needles::Needles;
use super::{REASON, Rounds};
use crate::clients::administrator::escaped;
use crate::failure::Outcome;
use crate::http::Request;

impl Rounds<'_> {
    /// Bodies that cannot be read: broken JSON, an unknown member, a wrong type, a wrong media type, too long a value.
    pub(super) fn broken_bodies(&mut self, needles: &mut Needles) -> Outcome {
        let all = self
            .bootstrap
            .path(&format!("resources/{}/credentials", self.resource));
        let mut bodies = Vec::new();
        let mut add = |kind, text: &dyn Fn(&str) -> String, media| {
            let secret = self.secret(kind, needles);
            bodies.push((media, text(&secret).into_bytes()));
        };
        let json_type = "application/json";
        add("broken JSON", &|s| format!("{{\"secret\":\"{s}\",,}}"), json_type);
        add("cut JSON", &|s| format!("{{\"secret\":\"{s}"), json_type);
        add(
            "no JSON",
            &|s| format!("secret={}&kind=bearer_token", escaped(s)),
            json_type,
        );
        add(
            "an unknown member",
            &|s| {
                format!(
                    "{{\"name\":\"n\",\"kind\":\"bearer_token\",\"secrets\":\"{s}\",\"reason\":\"r\",\"idempotencyKey\":\"k\"}}"
                )
            },
            json_type,
        );
        add(
            "the name of a member",
            &|s| format!("{{\"{s}\":1,\"kind\":\"bearer_token\",\"reason\":\"r\",\"idempotencyKey\":\"k\"}}"),
            json_type,
        );
        add(
            "a wrong type",
            &|s| {
                format!(
                    "{{\"name\":\"n\",\"kind\":\"bearer_token\",\"secret\":[\"{s}\"],\"reason\":\"r\",\"idempotencyKey\":\"k\"}}"
                )
            },
            json_type,
        );
        add(
            "an unknown kind",
            &|s| {
                format!(
                    "{{\"name\":\"n\",\"kind\":\"{s}\",\"secret\":\"{s}\",\"reason\":\"r\",\"idempotencyKey\":\"k\"}}"
                )
            },
            json_type,
        );
        add(
            "twice the same member",
            &|s| {
                format!(
                    "{{\"name\":\"n\",\"kind\":\"bearer_token\",\"secret\":\"x\",\"secret\":\"{s}\",\"reason\":\"r\",\"idempotencyKey\":\"k\"}}"
                )
            },
            json_type,
        );
        add(
            "a wrong media type",
            &|s| format!("{{\"secret\":\"{s}\"}}"),
            "text/plain",
        );
        add(
            "a form",
            &|s| format!("secret={}", escaped(s)),
            "application/x-www-form-urlencoded",
        );
        add(
            "a media type",
            &|s| format!("{{\"secret\":\"{s}\"}}"),
            "multipart/form-data",
        );
        for content in bodies {
            let mut request = Request::new("POST", all.clone(), &self.bootstrap.token);
            request.content = Some(content);
            self.refuse(&request)?;
        }
        Ok(())
    }

    /// Secrets where none belongs: in the path, the query, a header, a cookie, a key.
    pub(super) fn misplaced(&mut self, needles: &mut Needles) -> Outcome {
        let in_path = escaped(&self.secret("in the path", needles));
        self.refuse(&Request::get(
            self.bootstrap.path(&format!("service-accounts/{in_path}")),
            &self.bootstrap.token,
        ))?;
        let nowhere = escaped(&self.secret("in an unknown path", needles));
        self.refuse(&Request::get(format!("/{nowhere}"), &self.bootstrap.token))?;
        let in_query = escaped(&self.secret("in the query", needles));
        let path = self.bootstrap.path(&format!("capabilities?token={in_query}"));
        self.refuse(&Request::get(path, ""))?;
        let filter = escaped(&self.secret("in an unknown filter", needles));
        let path = self
            .bootstrap
            .path(&format!("service-accounts?access_token={filter}"));
        self.refuse(&Request::get(path, &self.bootstrap.token))?;
        for (kind, name) in [
            ("in X-Api-Key", "X-Api-Key"),
            ("in a cookie", "Cookie"),
            ("in Proxy-Authorization", "Proxy-Authorization"),
            ("in X-Auth-Token", "X-Auth-Token"),
        ] {
            let secret = self.secret(kind, needles);
            let mut request = Request {
                token: None,
                ..Request::get(self.bootstrap.path("capabilities"), "")
            };
            request.headers = vec![(name, format!("session={secret}"))];
            self.refuse(&request)?;
        }
        Ok(())
    }

    /// Tokens that are none, and that are nearly one.
    pub(super) fn strangers(&mut self, needles: &mut Needles) -> Outcome {
        let capabilities = self.bootstrap.path("capabilities");
        let garbage = self.secret("a token of no form", needles);
        self.refuse(&Request::get(capabilities.clone(), &garbage))?;
        let plain: String = self
            .secret("a token without a checksum", needles)
            .replace(['/', '+'], "A");
        needles.add("a token without a checksum", &plain);
        let nearly = format!("prov_sat_ABCDEFGHIJKL_{plain:A<49.49}");
        self.refuse(&Request::get(capabilities.clone(), &nearly))?;
        let three = self.secret("a signed token", needles).replace(['/', '+'], "-");
        needles.add("a signed token", &three);
        self.refuse(&Request::get(
            capabilities.clone(),
            &format!("eyJhbGciOiJub25lIn0.{three}.{three}"),
        ))?;
        let basic = self.secret("a password", needles);
        let mut request = Request {
            token: None,
            ..Request::get(capabilities, "")
        };
        request.headers = vec![("Authorization", format!("Basic {basic}"))];
        self.refuse(&request)
    }

    /// The same by tools, where an answer is a success that tells of a failure.
    pub(super) fn tools(&mut self, needles: &mut Needles) -> Outcome {
        self.keys += 1;
        let good = self.secret("credential by a tool", needles);
        let bad = self.secret("a wrong argument of a tool", needles);
        let unknown = self.secret("an unknown argument of a tool", needles);
        let arguments = json!({
            "resourceId": self.resource, "name": format!("By a tool {}", self.keys), "kind": "bearer_token",
            "secret": good, "reason": REASON, "idempotencyKey": format!("leaks-tool-{:08}", self.keys),
        });
        let mut wrong = arguments.clone();
        wrong["secret"] = json!({ "value": bad });
        let mut strange = arguments.clone();
        strange["password"] = json!(unknown);
        for arguments in [arguments, wrong, strange] {
            let tool = "createHeadlessResourceCredential";
            let request = self.bootstrap.call("/mcp?toolsets=all", tool, &arguments);
            self.refuse(&request)?;
        }
        Ok(())
    }

    /// The endpoints of OAuth, with codes, tokens and secrets that nobody gave out.
    pub(super) fn grants(&mut self, needles: &mut Needles) -> Outcome {
        for (kind, path, form) in [
            (
                "a client secret",
                "/oauth/token",
                "grant_type=client_credentials&client_id=c&client_secret=",
            ),
            (
                "a refresh token",
                "/oauth/token",
                "grant_type=refresh_token&client_id=c&refresh_token=",
            ),
            (
                "a code",
                "/oauth/token",
                "grant_type=authorization_code&client_id=c&redirect_uri=http%3A%2F%2Flocalhost&code_verifier=v&code=",
            ),
            (
                "a code verifier",
                "/oauth/token",
                "grant_type=authorization_code&client_id=c&redirect_uri=http%3A%2F%2Flocalhost&code=x&code_verifier=",
            ),
            (
                "an assertion",
                "/oauth/token",
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=",
            ),
            (
                "a client assertion",
                "/oauth/token",
                "grant_type=client_credentials&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=",
            ),
        ] {
            let secret = self.secret(kind, needles);
            let mut request = Request {
                token: None,
                ..Request::new("POST", path, "")
            };
            let text = format!("{form}{}", escaped(&secret));
            request.content = Some(("application/x-www-form-urlencoded", text.into_bytes()));
            self.refuse(&request)?;
        }
        let secret = self.secret("a revoked token", needles);
        let mut request = Request {
            token: None,
            ..Request::new("POST", "/oauth/revoke", "")
        };
        let text = format!("token={}", escaped(&secret));
        request.content = Some(("application/x-www-form-urlencoded", text.into_bytes()));
        // RFC 7009 §2.2: an unknown token is answered 200; both are kept.
        let answer = self.send(&request)?;
        self.refusals.extend_from_slice(&answer.body);
        let state = escaped(&self.secret("a code of a callback", needles));
        let request = Request {
            token: None,
            ..Request::get(format!("/oauth/callback?state=x&code={state}"), "")
        };
        let answer = self.send(&request)?;
        self.refusals.extend_from_slice(&answer.body);
        Ok(())
    }
}

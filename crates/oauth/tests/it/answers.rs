//! What is published and answered, byte by byte.

use provost_oauth::Refusal;
use provost_oauth::error::{Code, TokenError};
use provost_oauth::metadata::{AuthorizationServer, ProtectedResource, well_known};
use serde_json::json;

#[test]
fn an_error_has_its_code_status_and_sentence() {
    let error = Refusal::Expired.answer(Code::InvalidGrant);
    assert_eq!(error.status(), 400);
    assert_eq!(
        error.json(),
        r#"{"error":"invalid_grant","error_description":"the token is expired"}"#
    );
    assert_eq!(Refusal::Busy.answer(Code::InvalidDpopProof).status(), 503);
    for (code, word, status) in [
        (Code::InvalidRequest, "invalid_request", 400),
        (Code::InvalidClient, "invalid_client", 401),
        (Code::UnauthorizedClient, "unauthorized_client", 400),
        (Code::UnsupportedGrantType, "unsupported_grant_type", 400),
        (Code::InvalidScope, "invalid_scope", 400),
        (Code::InvalidTarget, "invalid_target", 400),
        (Code::InvalidDpopProof, "invalid_dpop_proof", 400),
        (Code::InvalidToken, "invalid_token", 401),
        (Code::InsufficientScope, "insufficient_scope", 403),
        (Code::TemporarilyUnavailable, "temporarily_unavailable", 503),
    ] {
        assert_eq!((code.as_str(), code.status()), (word, status));
    }
}

#[test]
fn a_description_has_only_the_characters_that_are_allowed() {
    let error = TokenError::new(Code::InvalidRequest, "a \"b\"\\\n\u{e9}c");
    assert_eq!(error.description(), "a 'b''''c");
}

#[test]
fn metadata_has_the_registered_names() {
    let server = AuthorizationServer {
        issuer: "https://provost.example".into(),
        token_endpoint: "https://provost.example/oauth/token".into(),
        jwks_uri: "https://provost.example/oauth/jwks".into(),
        code_challenge_methods_supported: vec!["S256".into()],
        authorization_grant_profiles_supported: vec![provost_oauth::id_jag::GRANT_PROFILE.into()],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
        ..AuthorizationServer::default()
    };
    let expected = json!({
        "issuer": "https://provost.example", "token_endpoint": "https://provost.example/oauth/token",
        "jwks_uri": "https://provost.example/oauth/jwks", "response_types_supported": [], "grant_types_supported": [],
        "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
        "token_endpoint_auth_methods_supported": [], "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": true,
    });
    assert_eq!(serde_json::to_value(server).unwrap(), expected);
    let resource = ProtectedResource {
        resource: "https://provost.example/mcp".into(),
        authorization_servers: vec!["https://provost.example".into()],
        bearer_methods_supported: vec!["header".into()],
        ..ProtectedResource::default()
    };
    let expected = json!({
        "resource": "https://provost.example/mcp", "authorization_servers": ["https://provost.example"],
        "bearer_methods_supported": ["header"], "dpop_bound_access_tokens_required": false,
    });
    assert_eq!(serde_json::to_value(resource).unwrap(), expected);
}

#[test]
fn the_well_known_name_goes_between_host_and_path() {
    let path = |path| well_known("oauth-protected-resource", path);
    assert_eq!(path(""), "/.well-known/oauth-protected-resource");
    assert_eq!(path("/"), "/.well-known/oauth-protected-resource");
    assert_eq!(
        path("/api/headless/v1"),
        "/.well-known/oauth-protected-resource/api/headless/v1"
    );
}

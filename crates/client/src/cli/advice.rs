//! What a caller can do who was not let in.

use super::connection::{Connection, TokenSource};
use super::failure::Failure;
use provost_words::time::Timestamp;

/// The code of a token that belongs to another organization than the request names.
pub(super) const OTHER_ORGANIZATION: &str = "organization_forbidden";
/// Names the organization of such a token.
pub(super) const TOKEN_ORGANIZATION: &str = "tokenOrganizationId";

/// Names the scopes that a refusal asks for, with blanks between them.
pub(super) const NEEDED_SCOPE: &str = "scope";

/// Says where the token came from, and what leads on.
pub(super) fn about_access(failure: Failure, connection: &Connection) -> Failure {
    let (place, source) = (&connection.place, &connection.token_source);
    let from = format!("the token came from {source}");
    if failure.refused("code") == Some(OTHER_ORGANIZATION) {
        let own = failure.refused(TOKEN_ORGANIZATION).map(str::to_owned);
        let (named, named_by) = (&place.organization, &place.organization_source);
        return match own {
            Some(own) => failure
                .and(format!(
                    "the token, from {source}, belongs to the organization {own}; the request named {named}, from {named_by}"
                ))
                .and(format!("say --organization {own}, or use a token of {named}")),
            None => failure.and(from),
        };
    }
    if failure.status != Some(401) {
        let lacks = failure.refused("code") == Some("insufficient_scope");
        return match (source, failure.refused(NEEDED_SCOPE)) {
            (TokenSource::SignIn { profile, .. }, Some(scope)) if lacks => {
                let scopes = scope.replace(' ', ",");
                failure.and(from).and(format!(
                    "if your role has it, sign in with it: provost login --profile {profile} --scope read,{scopes}"
                ))
            }
            _ => failure.and(from),
        };
    }
    let code = failure.refused("code").unwrap_or_default().to_owned();
    let mut failure = failure.and(from);
    // What does not read as a time is not repeated.
    let time = |member| failure.refused(member).and_then(Timestamp::parse);
    let ended = [("expired", time("expiredAt")), ("was revoked", time("revokedAt"))];
    for (how, at) in ended {
        if let Some(at) = at {
            failure = failure.and(format!("it {how} at {}", at.to_rfc3339()));
        }
    }
    match (code.as_str(), source) {
        (_, TokenSource::SignIn { profile, .. }) => failure.and(format!(
            "the sign-in has ended: provost login --profile {profile}"
        )),
        ("token_expired", TokenSource::Profile(name)) => failure.and(format!(
            "get a new one from who administers the organization, then: provost login --profile {name}"
        )),
        ("token_expired", _) => failure
            .and("get a new one from who administers the organization")
            .and("one that renews itself in time: provost token rotate --in-place --if-older-than 20d"),
        ("token_revoked", _) => failure
            .and("who revoked it, and why, stands in the audit log: provost audit list, with another token"),
        _ => failure.and(format!("is it a token of {}? `provost doctor` looks", place.url)),
    }
}

//! What a token is for: scopes and resources.
//!
//! Keeps OC-2: what an access token may do is never more than was asked for, than its client may, than its user's or
//! account's role, and than the assertion behind it says.

use super::super::state::Oauth;
use provost_kernel::auth::ScopeSet;
use provost_oauth::TokenError;
use provost_oauth::error::Code;

/// Returns what is granted of what is asked for; what nobody knows is passed over (RFC 6749 §3.3).
///
/// Errors: `invalid_scope` when nothing is left.
pub fn granted(asked: Option<&str>, limits: &[ScopeSet]) -> Result<ScopeSet, TokenError> {
    let asked = match asked {
        None => ScopeSet::reads(),
        Some(words) => {
            let names = provost_oauth::scopes(words);
            let names = names.map_err(|refusal| refusal.answer(Code::InvalidScope))?;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            ScopeSet::of(&names).closed()
        }
    };
    let granted = limits.iter().fold(asked, |all, limit| all.and(limit.closed()));
    if granted == ScopeSet::default() {
        return Err(TokenError::new(
            Code::InvalidScope,
            "nothing of this scope can be granted to this client and its principal",
        ));
    }
    Ok(granted)
}

/// Returns the resources that a request names (RFC 8707). One that names none asks for the API alone: a token serves one
/// purpose, and MCP clients must name theirs.
///
/// Errors: `invalid_target`.
pub fn audiences<'a>(oauth: &Oauth, named: impl Iterator<Item = &'a str>) -> Result<Vec<String>, TokenError> {
    let mut audiences: Vec<String> = Vec::new();
    for name in named {
        let ours = oauth.resource(name).ok_or_else(|| {
            TokenError::new(Code::InvalidTarget, "no tokens are issued for this resource here")
        })?;
        if !audiences.contains(&ours) {
            audiences.push(ours);
        }
    }
    if audiences.is_empty() {
        let [api, _] = oauth.resources();
        audiences.push(api);
    }
    Ok(audiences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_lies_within_every_limit() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let of = |names: &[&str]| ScopeSet::of(names);
        let limits = [
            of(&["policies:write", "mcp:read"]),
            of(&["policies:read", "mcp:read"]),
        ];
        let granted = |asked| granted(asked, &limits).map(|set| set.to_list().join(" "));
        assert_eq!(
            granted(Some("policies:write unheard:of")).unwrap(),
            "policies:read"
        );
        assert_eq!(granted(None).unwrap(), "mcp:read policies:read");
        assert!(granted(Some("unheard:of")).is_err() && granted(Some("audit:read")).is_err());
        assert!(granted(Some("a  b")).is_err());
    }
}

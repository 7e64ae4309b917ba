//! What a person is asked to give: no more than was asked for, than the client may, and than they have themselves (SI-5).
//!
//! Keeps SI-5.

use super::request::AuthorizationRequest;
use crate::oauth::grants::Client;
use provost_kernel::auth::{Role, ScopeSet};

/// What consent would give, and what was asked for in vain.
#[derive(Debug, PartialEq, Eq)]
pub struct Offer {
    /// What the tokens would carry.
    pub scopes: ScopeSet,
    /// What the role does not have.
    pub beyond_role: ScopeSet,
}

/// Computes the offer to somebody with a role. Who asks for nothing asks for what reads.
pub fn offer(asked: &AuthorizationRequest, client: &Client, role: Role) -> Offer {
    of(asked.scopes(), client.scopes, role)
}

fn of(asked: ScopeSet, client: Option<ScopeSet>, role: Role) -> Offer {
    let says_nothing = asked == ScopeSet::default();
    let asked = if says_nothing {
        ScopeSet::reads()
    } else {
        asked.closed()
    };
    let possible = client.map_or(asked, |most| most.closed().and(asked));
    let scopes = possible.and(role.all_scopes());
    let missing = possible.names().filter(|name| !says_nothing && !scopes.has(name));
    Offer {
        scopes,
        beyond_role: ScopeSet::of(&missing.collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SI-5.
    #[test]
    fn an_offer_is_within_request_client_and_role() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let asked = ScopeSet::of(&["policies:write", "audit:export", "fleet:read"]);
        let client = Some(ScopeSet::of(&["policies:write", "audit:export"]));
        let made = of(asked, client, Role::Viewer);
        assert_eq!(made.scopes.to_list(), ["policies:read"]);
        assert_eq!(made.beyond_role.to_list(), ["audit:export", "policies:write"]);
        let made = of(asked, None, Role::Admin);
        assert_eq!(
            made.scopes.to_list(),
            ["audit:export", "fleet:read", "policies:read", "policies:write"]
        );
        assert_eq!(made.beyond_role, ScopeSet::default());
    }

    #[test]
    fn who_asks_for_nothing_is_offered_what_reads() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let made = of(ScopeSet::default(), None, Role::Viewer);
        assert_eq!(
            made.scopes.to_list(),
            ["fleet:read", "inventory:read", "policies:read"]
        );
        assert_eq!(made.beyond_role, ScopeSet::default());
        let made = of(
            ScopeSet::default(),
            Some(ScopeSet::of(&["policies:write"])),
            Role::Admin,
        );
        assert_eq!(made.scopes.to_list(), ["policies:read"]);
    }
}

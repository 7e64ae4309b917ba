//! The decision of [`authorize`], cell by cell.

use super::*;
use crate::auth::{Actor, OrganizationId, Permission, Role, ScopeSet, TokenRef};
use crate::error::Code;
use serde_json::json;

const SCOPE: &str = "service_accounts:read";
const OWN: &str = "service_accounts:rotate_self";

const SCOPED: Meta = Meta::read("readInTest", "/things/{thingId}", "service_accounts")
    .access(SCOPE, &[Role::Admin, Role::Auditor]);
const OR_SELF: Meta = Meta::write(
    "writeInTest",
    Method::Post,
    "/things/{thingId}",
    "service_accounts",
)
.rule(Access::ScopedOrSelf {
    scope: SCOPE,
    roles: &[Role::Admin],
    self_scope: OWN,
    parameter: "thingId",
});
const PREVIEWED: Meta = Meta::write("planInTest", Method::Post, "/plans", "managed_config")
    .access("managed_config:read", &[Role::Admin, Role::Viewer])
    .previews("managed_config:rollback", &[Role::Admin, Role::Operator]);

const EITHER: Meta = Meta::read("fetchInTest", "/things", "managed_config").rule(Access::ScopedEither {
    scope: "managed_config:read",
    other: "managed_config:pull",
    roles: &[Role::Admin, Role::Auditor],
});

const BOTH: Meta =
    Meta::write("trustInTest", Method::Post, "/things", "managed_config").rule(Access::ScopedBoth {
        scope: "managed_config:write",
        other: "managed_config:rollback",
        roles: &[Role::Admin],
    });

/// An actor whose scopes are as said, whatever its role would grant: each check has to hold alone.
fn actor(role: Role, scopes: &[&str]) -> Actor {
    Actor {
        organization: OrganizationId::parse("acme").unwrap(),
        kind: "service_account",
        id: "sac_me".into(),
        display: "me".into(),
        permission: Permission {
            role,
            scopes: ScopeSet::of(scopes),
            all_of_role: false,
        },
        has_role: true,
        token: Some(TokenRef {
            id: "tok".into(),
            prefix: "prov_sat_x".into(),
            is_own: true,
            issued_at: None,
            expires_at: crate::Timestamp::from_ms(1),
        }),
        replay_only: false,
        item: None,
        key: None,
    }
}

fn answer(meta: &Meta, actor: &Actor, thing: &str) -> Option<Code> {
    authorize(meta, actor, &json!({ "thingId": thing }))
        .err()
        .map(|error| error.code())
}

#[test]
fn an_operation_wants_its_scope_and_one_of_its_roles() {
    for role in Role::ALL {
        let is_named = matches!(role, Role::Admin | Role::Auditor);
        let with = answer(&SCOPED, &actor(role, &[SCOPE]), "x");
        assert_eq!(with, (!is_named).then_some(Code::RoleForbidden), "{role:?}");
        let without = if is_named {
            Code::InsufficientScope
        } else {
            Code::RoleForbidden
        };
        for scopes in [&[][..], &["service_accounts:write", "audit:read", OWN]] {
            assert_eq!(
                answer(&SCOPED, &actor(role, scopes), "x"),
                Some(without),
                "{role:?}"
            );
        }
    }
}

#[test]
fn oneself_is_who_the_path_names_and_needs_the_own_scope() {
    for role in Role::ALL {
        assert_eq!(answer(&OR_SELF, &actor(role, &[OWN]), "sac_me"), None, "{role:?}");
        assert!(
            answer(&OR_SELF, &actor(role, &[OWN]), "sac_you").is_some(),
            "{role:?}"
        );
        assert!(
            answer(&OR_SELF, &actor(role, &[]), "sac_me").is_some(),
            "{role:?}"
        );
    }
    assert_eq!(answer(&OR_SELF, &actor(Role::Admin, &[SCOPE]), "sac_you"), None);
    let viewer = actor(Role::Viewer, &[SCOPE]);
    assert_eq!(answer(&OR_SELF, &viewer, "sac_you"), Some(Code::RoleForbidden));
}

#[test]
fn both_of_two_scopes_are_needed_and_both_are_named() {
    let both = ["managed_config:write", "managed_config:rollback"];
    assert_eq!(answer(&BOTH, &actor(Role::Admin, &both), "x"), None);
    for lacking in [&both[..1], &both[1..], &[]] {
        let caller = actor(Role::Admin, lacking);
        let refusal = authorize(&BOTH, &caller, &json!({})).unwrap_err();
        assert_eq!(refusal.code(), Code::InsufficientScope);
        assert!(
            both.iter().all(|scope| refusal.to_string().contains(scope)),
            "{refusal}"
        );
        assert!(!may_call(&BOTH, &caller));
    }
    let operator = actor(Role::Operator, &both);
    assert_eq!(answer(&BOTH, &operator, "x"), Some(Code::RoleForbidden));
}

#[test]
fn either_of_two_scopes_suffices_and_the_first_is_named() {
    for role in Role::ALL {
        let is_named = matches!(role, Role::Admin | Role::Auditor);
        for scopes in [&["managed_config:read"], &["managed_config:pull"]] {
            let with = answer(&EITHER, &actor(role, scopes), "x");
            assert_eq!(with, (!is_named).then_some(Code::RoleForbidden), "{role:?}");
            assert_eq!(may_call(&EITHER, &actor(role, scopes)), is_named, "{role:?}");
        }
    }
    let without = authorize(
        &EITHER,
        &actor(Role::Admin, &["managed_config:rollback"]),
        &json!({}),
    );
    let refusal = without.unwrap_err();
    assert_eq!(refusal.code(), Code::InsufficientScope);
    assert!(refusal.to_string().contains("managed_config:read"));
}

#[test]
fn who_has_no_role_may_do_nothing_and_an_item_opens_what_lets_it_in() {
    const ANYBODY: Meta = Meta::read("lookInTest", "/looks", "capabilities").rule(Access::Authenticated);
    let mut stranger = actor(Role::Admin, &[SCOPE, OWN]);
    assert_eq!(answer(&ANYBODY, &stranger, "x"), None);
    stranger.has_role = false;
    for meta in [&ANYBODY, &SCOPED, &OR_SELF] {
        assert_eq!(answer(meta, &stranger, "sac_me"), Some(Code::RoleForbidden));
        assert!(!may_call(meta, &stranger));
    }
    stranger.item = Some("item".into());
    assert_eq!(answer(&ANYBODY, &stranger, "x"), Some(Code::RoleForbidden));
    stranger.has_role = true;
    assert_eq!(answer(&ANYBODY, &stranger, "x"), None);
    assert!(
        !may_call(&ANYBODY, &stranger),
        "a token of one item sees no tools"
    );
}

#[test]
fn a_performance_wants_more_than_its_preview() {
    let may = |role, scopes: &[&str]| authorize_performance(&PREVIEWED, &actor(role, scopes)).is_ok();
    assert!(may(Role::Operator, &["managed_config:rollback"]));
    assert!(!may(Role::Operator, &["managed_config:read"]));
    assert!(!may(Role::Viewer, &["managed_config:rollback"]));
    assert!(authorize_performance(&SCOPED, &actor(Role::Viewer, &[])).is_ok());
}

#[test]
fn a_tool_is_shown_to_who_may_call_it_for_some_path() {
    assert!(may_call(&SCOPED, &actor(Role::Auditor, &[SCOPE])));
    assert!(!may_call(&SCOPED, &actor(Role::Auditor, &[OWN])));
    assert!(!may_call(&SCOPED, &actor(Role::Viewer, &[SCOPE])));
    assert!(may_call(&OR_SELF, &actor(Role::Viewer, &[OWN])));
    assert!(!may_call(&OR_SELF, &actor(Role::Viewer, &[SCOPE])));
}

#[test]
fn a_token_of_one_item_calls_what_lets_it_in() {
    const LET_IN: Meta = SCOPED.accepts_item_token();
    assert_eq!((SCOPED.of_item, LET_IN.of_item), (false, true));
}

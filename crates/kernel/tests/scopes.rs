//! A program from its start: what nobody may do before its scopes are installed, and what roles hold from then on.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use provost_kernel::auth::{Permission, Role, ScopeSet, Scopes, Toolset, may_mint, scope, scopes, toolsets};

fn things(may_read: &'static [Role]) -> Scopes {
    let toolset = Toolset {
        place: 0,
        name: "things",
        says: "",
        title: "Things",
        holds: "things",
    };
    let scopes = vec![scope("things:read").held_by(may_read), scope("things:write")];
    Scopes::of(vec![toolset], scopes).unwrap()
}

#[test]
fn nobody_may_do_anything_until_scopes_are_installed_once() {
    let early = ScopeSet::of(&["things:read"]);
    assert!(!ScopeSet::is_known("things:read") && scopes().is_empty() && toolsets().is_empty());
    let admin = Permission::effective(Role::Admin, None, None);
    assert_eq!((admin.scopes, ScopeSet::all()), (ScopeSet::default(), early));
    things(&[Role::Viewer]).install().unwrap();
    assert!(ScopeSet::is_known("things:read"));
    assert!(!early.has("things:read"), "what was read before holds nothing");
    let viewer = Permission::effective(Role::Viewer, None, None);
    assert_eq!(viewer.scopes.to_list(), ["things:read"]);
    assert!(!admin.scopes.has("things:read"));
    let admin = Permission::effective(Role::Admin, None, None);
    assert_eq!(admin.scopes.to_list(), ["things:read", "things:write"]);
    assert!(may_mint(admin, viewer).is_ok() && may_mint(viewer, admin).is_err());
    things(&[Role::Viewer]).install().unwrap();
    assert!(things(&[]).install().is_err());
    assert_eq!(
        viewer.scopes,
        Permission::effective(Role::Viewer, None, None).scopes
    );
}

//! Scenarios of the area.

use crate::audit::testing::on_every_store;
use provost_kernel::operation::authorize;
use serde_json::{Value, json};

const GET: &str = "getHeadlessCapabilities";

fn operations(answer: &Value, toolset: &str) -> Vec<String> {
    let toolsets = answer["toolsets"].as_array().unwrap();
    let found = toolsets.iter().find(|t| t["name"] == toolset);
    found.map_or(Vec::new(), |t| {
        serde_json::from_value(t["operations"].clone()).unwrap()
    })
}

#[test]
fn a_caller_sees_itself_and_its_limits() {
    on_every_store("capabilities_self", |world| {
        let answer = world.get("narrow", GET, &[], "").json();
        let prefix = answer["token"]["tokenPrefix"].clone();
        assert!(prefix.as_str().unwrap().starts_with("prov_sat_"));
        let ends = answer["token"]["expiresAt"].clone();
        assert!(
            ends.as_str()
                .is_some_and(|text| provost_kernel::Timestamp::parse(text).is_some())
        );
        assert_eq!(
            answer,
            json!({
                "organizationId": "acme",
                "principal": { "type": "service_account", "id": "narrow", "name": "narrow" },
                "permissionRole": "admin",
                "scopes": ["events:read", "service_accounts:rotate_self"],
                "allOfRole": false,
                "token": { "id": "sat_narrow", "tokenPrefix": prefix, "isOwn": true, "expiresAt": ends },
                "toolsets": [
                    { "name": "capabilities", "operations": [GET] },
                    { "name": "events", "operations": ["listHeadlessEvents"] },
                ],
                "limits": {
                    "bodyBytes": 262_144,
                    "nestingLevels": 32,
                    "reasonCharacters": 500,
                    "idempotencyKeyCharacters": 255,
                    "pageItems": 100,
                    "writesInFlight": 64,
                },
                "serverVersion": env!("CARGO_PKG_VERSION"),
            })
        );
    });
}

/// Proves CP-1.
#[test]
fn what_is_shown_depends_on_the_role() {
    on_every_store("capabilities_roles", |world| {
        let shown = |who| world.get(who, GET, &[], "").json();
        assert_eq!(operations(&shown("viewer"), "audit"), [""; 0]);
        let export = "exportHeadlessAuditEvents".to_owned();
        assert!(operations(&shown("auditor"), "audit").contains(&export));
        assert!(!operations(&shown("operator"), "audit").contains(&export));
        assert_eq!(
            operations(&shown("operator"), "automation_settings"),
            ["getHeadlessAutomationSettings"]
        );
        assert_eq!(shown("admin")["allOfRole"], true);
        let every: usize = shown("admin")["toolsets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|toolset| toolset["operations"].as_array().unwrap().len())
            .sum();
        assert_eq!(every, world.kernel.registry.entries().len());
    });
}

mod oneself {
    use super::*;
    use crate::capabilities::model::toolsets;
    use provost_kernel::auth::{Actor, OrganizationId, Permission, Role};
    use provost_kernel::operation::{
        Access, Empty, Entry, Input, Meta, Method, NoContent, Operation, Registry,
    };
    use provost_kernel::{OperationContext, Result};

    struct Turn;

    impl Operation for Turn {
        const META: Meta = Meta::write("turn", Method::Post, "/things/{id}/turn", "service_accounts")
            .rule(Access::ScopedOrSelf {
                scope: "service_accounts:rotate",
                roles: &[Role::Admin],
                self_scope: "service_accounts:rotate_self",
                parameter: "id",
            })
            .status(204);
        type Path = Empty;
        type Query = Empty;
        type Body = Empty;
        type Output = NoContent;

        fn call(_: &mut OperationContext<'_>, _: &Input<Self>) -> Result<NoContent> {
            Ok(NoContent {})
        }
    }

    /// Proves CP-1.
    #[test]
    fn an_operation_that_one_may_do_to_oneself_counts() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let registry = Registry::default().with(vec![Entry::of::<Turn>()]);
        let mut actor = Actor::system(OrganizationId::parse("acme").unwrap());
        actor.permission = Permission::effective(Role::Viewer, None, None);
        assert!(
            toolsets(&registry, &actor).is_empty(),
            "a session is not the account"
        );
        actor.token = Some(provost_kernel::auth::TokenRef {
            id: "sat_1".into(),
            prefix: "prov_sat_abc".into(),
            is_own: true,
            issued_at: None,
            expires_at: provost_kernel::Timestamp::from_ms(1),
        });
        assert!(authorize(&Turn::META, &actor, &json!({ "id": "another" })).is_err());
        assert_eq!(toolsets(&registry, &actor)[0].operations, ["turn"]);
        actor.permission.scopes = provost_kernel::auth::ScopeSet::of(&["events:read"]);
        assert!(toolsets(&registry, &actor).is_empty());
    }
}

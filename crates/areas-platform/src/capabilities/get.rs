//! `GET …/capabilities`

use super::model::{Capabilities, Limits, Principal, Token, toolsets};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::{Kernel, OperationContext, Result};

pub(super) struct Get;

impl Operation for Get {
    const META: Meta = Meta::read("getHeadlessCapabilities", "/capabilities", "capabilities")
        .rule(Access::Authenticated)
        .says(
            "Show what the caller may do",
            "Any credential of the organization may ask. An operation that is listed may still refuse a \
             particular record.",
        )
        .command("capabilities", "show");
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = Capabilities;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<Capabilities> {
        let (actor, kernel) = (ctx.actor(), Kernel::behind(ctx.services())?);
        let permission = actor.permission;
        let token = actor.token.as_ref();
        Ok(Capabilities {
            organization_id: actor.organization.as_str().to_owned(),
            principal: Principal {
                kind: actor.kind,
                id: actor.id.clone(),
                name: actor.display.clone(),
            },
            permission_role: permission.role,
            scopes: permission.scopes.to_list(),
            all_of_role: permission.all_of_role,
            token: token.map(|token| Token {
                id: token.id.clone(),
                token_prefix: token.prefix.clone(),
                is_own: token.is_own,
                issued_at: token.issued_at,
                expires_at: token.expires_at,
            }),
            toolsets: toolsets(&kernel.registry, actor),
            limits: Limits::of(&kernel.settings),
            server_version: env!("CARGO_PKG_VERSION"),
        })
    }
}

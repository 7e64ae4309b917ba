//! Scopes of the specification whose areas are not there yet: lists and tokens name them, and no operation needs them.
//!
//! An area that is built takes its toolset and scopes from here into its own value.

use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Scope, Toolset, scope};

/// The area.
pub static AREA: Area = Area {
    toolsets: &[
        toolset(3, "compliance", "", "Compliance", "compliance records"),
        toolset(4, "findings", "", "Findings", "findings"),
        toolset(6, "governance", "", "Governance", "rules of governance"),
        toolset(8, "investigations", "", "Investigations", "investigations"),
        toolset(12, "operations", "", "Operations", "operations"),
        toolset(
            16,
            "llm_gateway",
            "What the LLM gateway asks: whom names mean.",
            "LLM gateway",
            "the LLM gateway",
        ),
    ],
    scopes: SCOPES,
    check: Check::Nothing("it owns no table"),
    ..Area::named("planned", "Scopes of areas that are not there yet")
};

const SCOPES: &[Scope] = &[
    scope("compliance:read").readers(),
    scope("compliance:write"),
    scope("findings:read").readers(),
    scope("findings:write"),
    scope("governance:read").readers(),
    scope("governance:write"),
    scope("investigations:read").readers(),
    scope("investigations:write"),
    scope("operations:read").readers(),
    scope("operations:write"),
    scope("llm_gateway:read").readers(),
    scope("llm_gateway:write").lasting(),
];

const fn toolset(
    place: u8,
    name: &'static str,
    says: &'static str,
    title: &'static str,
    holds: &'static str,
) -> Toolset {
    Toolset {
        place,
        name,
        says,
        title,
        holds,
    }
}

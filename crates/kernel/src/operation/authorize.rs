//! Whether an actor may call an operation.

use super::{Access, Meta};
use crate::auth::{Actor, Role};
use crate::error::{Code, Error, Result};
use serde_json::Value;

/// Says whether an actor may call an operation on the record that `parameter` names, if any.
///
/// Errors: `RoleForbidden`, `InsufficientScope` (with the scopes that are needed).
pub fn authorize(meta: &Meta, actor: &Actor, path: &Value) -> Result<()> {
    if let Access::OfKind { kind, parameter } = meta.access {
        return of_kind(actor, kind, parameter, path);
    }
    if !actor.has_role {
        let message = "this user has no role; an administrator gives it one (permissionRole)";
        return Err(Error::new(Code::RoleForbidden, message));
    }
    // Its operations let it in for one item, whatever the role and scopes of its principal (D10.6).
    if actor.item.is_some() {
        return Ok(());
    }
    match meta.access {
        // Answered above, whatever the caller's role.
        Access::OfKind { .. } => Err(Error::new(Code::RoleForbidden, "this caller may not do this")),
        Access::Authenticated => Ok(()),
        Access::Scoped { scope, roles } => scoped(actor, scope, roles),
        Access::ScopedEither { scope, other, roles } => {
            scoped(actor, other, roles).or_else(|_| scoped(actor, scope, roles))
        }
        Access::ScopedBoth { scope, other, roles } => scoped(actor, scope, roles)
            .and_then(|()| scoped(actor, other, roles))
            .map_err(|refusal| {
                if refusal.code() != Code::InsufficientScope {
                    return refusal;
                }
                let message = format!("this needs the scopes {scope} and {other}");
                Error::new(Code::InsufficientScope, message).with("scope", format!("{scope} {other}"))
            }),
        Access::ScopedOrSelf {
            scope,
            roles,
            self_scope,
            parameter,
        } => {
            let named = path.get(parameter).and_then(Value::as_str);
            let is_self = named.is_some_and(|id| actor.is_itself(id));
            if is_self && actor.permission.scopes.has(self_scope) {
                return Ok(());
            }
            scoped(actor, scope, roles)
        }
    }
}

/// Says whether an actor may perform what they may preview.
///
/// Errors: as [`authorize`].
pub fn authorize_performance(meta: &Meta, actor: &Actor) -> Result<()> {
    meta.performance
        .map_or(Ok(()), |needs| scoped(actor, needs.scope, needs.roles))
}

/// Says whether an actor may call an operation for at least some path: what a list of tools shows.
pub fn may_call(meta: &Meta, actor: &Actor) -> bool {
    let own = |scope| actor.has_role && actor.permission.scopes.has(scope);
    actor.item.is_none()
        && (authorize(meta, actor, &Value::Null).is_ok()
            || matches!(meta.access, Access::ScopedOrSelf { self_scope, .. } if own(self_scope) && actor.is_itself(&actor.id)))
}

/// Says whether a caller is of a kind that has operations of its own, and the record that the path names.
fn of_kind(actor: &Actor, kind: &str, parameter: &str, path: &Value) -> Result<()> {
    let refuse = |message: String| Err(Error::new(Code::RoleForbidden, message));
    let is_of_kind = actor.kind == kind && !actor.has_role && actor.item.is_none();
    if !is_of_kind || !actor.is_itself(&actor.id) {
        let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        return refuse(format!("only {article} {kind} may call this").replace('_', " "));
    }
    let named = path.get(parameter).and_then(Value::as_str);
    if parameter.is_empty() || named.is_some_and(|id| actor.is_itself(id)) {
        return Ok(());
    }
    refuse(format!("each {kind} may call this for itself alone").replace('_', " "))
}

fn scoped(actor: &Actor, scope: &'static str, roles: &[Role]) -> Result<()> {
    let permission = actor.permission;
    if !roles.contains(&permission.role) {
        let role = permission.role.as_str();
        return Err(Error::new(
            Code::RoleForbidden,
            format!("the role {role} may not do this"),
        ));
    }
    if permission.scopes.has(scope) {
        return Ok(());
    }
    Err(Error::new(Code::InsufficientScope, format!("this needs the scope {scope}")).with("scope", scope))
}

//! Access lists: policies that say who may use a skill, or a server's tools.
//!
//! An MCP ACL reaches the server as a content policy of one form, and is recognized by that form alone:
//!
//! ```text
//!   evaluateOn ["pre_tool"], action allow or block, no exception, at least one user or group and nobody else,
//!   conditions: mcp.server_id eq S, alone or in `all`, there also with mcp.tool_id in [T…]
//! ```
//!
//! Source: client contract §3.11; D9.10.

use super::{Logic, Rule};
use crate::action::Action;
use crate::catalogue::Field;
use crate::condition::{Check, Condition, Operand};
use crate::family::{Family, Occasion};

/// An access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    /// `skill.id` or `mcp.server_id`.
    pub field: Field,
    /// The skill or the server, as written.
    pub names: String,
    /// Whether it lets its subjects in; else it keeps them out.
    pub allows: bool,
}

/// Returns the access list that a policy is.
pub(super) fn of(family: Family, rule: &Rule) -> Option<Acl> {
    let Logic::Native(condition) = &rule.logic else {
        return None;
    };
    let field = match family {
        Family::SkillAcl => Field::SKILL,
        Family::Content if is_mcp(rule) => Field::MCP_SERVER,
        _ => return None,
    };
    let names = match condition {
        Condition::Is(_) => is(condition, field)?,
        Condition::All(nodes) => match nodes.as_slice() {
            [server] => is(server, field)?,
            [server, tools] if is_tools(tools) => is(server, field)?,
            _ => return None,
        },
        _ => return None,
    };
    Some(Acl {
        field,
        names: names.to_owned(),
        allows: rule.action == Action::Allow,
    })
}

fn is_mcp(rule: &Rule) -> bool {
    let scope = rule.scope.fields();
    rule.occasions == Occasion::PreTool.bit()
        && matches!(rule.action, Action::Allow | Action::Block)
        && rule.exceptions.is_empty()
        && !scope.is_empty()
        && scope
            .iter()
            .all(|field| matches!(*field, Field::USER | Field::GROUPS))
}

fn is(condition: &Condition, field: Field) -> Option<&str> {
    match condition {
        Condition::Is(predicate) => match (&predicate.operand, &predicate.check) {
            (Operand::Field(f), Check::Text { is, negated: false }) if *f == field => Some(is),
            _ => None,
        },
        _ => None,
    }
}

fn is_tools(condition: &Condition) -> bool {
    match condition {
        Condition::Is(predicate) => {
            matches!(predicate.operand, Operand::Field(Field::MCP_TOOL))
                && matches!(predicate.check, Check::TextIn { negated: false, .. })
        }
        _ => false,
    }
}

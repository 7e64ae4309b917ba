//! The policies that everybody judges by: natively, in Rego and in Cedar.
//!
//! Each is for some groups and some tools and has one condition more, as organizations write them.

use provost_policy::{Definition, Family, PolicySet};
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::sync::Arc;

/// What the policies are about.
#[derive(Clone)]
pub struct World {
    pub tools: Vec<String>,
    pub users: Vec<String>,
    pub groups: Vec<String>,
}

/// What the conditions read beyond users, groups and tools.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Attributes that many events share: the behaviour.
    Behaviour,
    /// The number of tokens as well, which nearly every event has for itself.
    Tokens,
    /// A member of the tool's input as well.
    Input,
    /// The number of tokens, and what the user did in the last ten minutes.
    Past,
}

/// One policy.
pub struct Policy {
    id: String,
    groups: Vec<String>,
    tools: Vec<String>,
    rest: OtherPolicies,
    action: &'static str,
}

enum OtherPolicies {
    TokensAbove(u64),
    Labels(Vec<&'static str>),
    ServerNotIn(Vec<&'static str>),
    Users(Vec<String>),
    ModelStarts(&'static str),
    Baggages(u64),
    CallsAtLeast(u64),
}

pub const LABELS: [&str; 4] = ["code", "money", "personal", "public"];
pub const SERVERS: [&str; 4] = ["bookings", "payments", "people", "search"];
const ACTIONS: [&str; 4] = ["block", "require_approval", "nudge", "flag_for_review"];

/// Returns so many policies.
pub fn policies(world: &World, count: usize, reads: Reads) -> Vec<Policy> {
    let some = |list: &[String], start: usize, n: usize| {
        let all = (0..n).map(|at| list[(start * 7 + at * 5) % list.len()].clone());
        let mut all: Vec<String> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let policy = |n: usize| Policy {
        id: format!("p{n:03}"),
        // A third is for everybody, a tenth about every tool.
        groups: if n.is_multiple_of(3) {
            Vec::new()
        } else {
            some(&world.groups, n, 2)
        },
        tools: if n % 10 == 9 {
            Vec::new()
        } else {
            some(&world.tools, n, 1 + n % 6)
        },
        rest: match (n % 5, reads) {
            (0, Reads::Past) => OtherPolicies::CallsAtLeast(3 + n as u64 % 5),
            (0, Reads::Input) => OtherPolicies::Baggages(1 + n as u64 % 3),
            (0, Reads::Tokens) => OtherPolicies::TokensAbove(2_000_000 - 20_000 * (1 + n as u64 % 40)),
            (0 | 1, _) => OtherPolicies::Labels(vec![LABELS[n % 4], LABELS[(n + 1) % 4]]),
            (2, _) => {
                OtherPolicies::ServerNotIn(vec![SERVERS[n % 4], SERVERS[(n + 1) % 4], SERVERS[(n + 2) % 4]])
            }
            (3, _) => OtherPolicies::Users(some(&world.users, n, 20)),
            _ => OtherPolicies::ModelStarts(if n.is_multiple_of(2) { "gpt-4o" } else { "gpt-5" }),
        },
        action: ACTIONS[n % 4],
    };
    (0..count).map(policy).collect()
}

/// Returns the policies, of which every tenth blocks.
pub fn stricter(mut policies: Vec<Policy>) -> Vec<Policy> {
    policies
        .iter_mut()
        .skip(5)
        .step_by(10)
        .for_each(|policy| policy.action = "block");
    policies
}

/// Returns the set of these policies.
pub fn native(policies: &[Policy]) -> PolicySet {
    let read = |policy: &Policy| match Definition::read(Family::Content, &policy.native()) {
        Ok(definition) => Arc::new(definition),
        Err(faults) => panic!("{}: {faults}", policy.native()),
    };
    PolicySet::new(policies.iter().map(read)).expect("different ids")
}

/// Returns the module whose set `matched` has the ids of the policies that match.
pub fn rego(policies: &[Policy]) -> String {
    let mut module = "package forge.content\nimport rego.v1\n".to_owned();
    for policy in policies {
        let _ = write!(
            module,
            "matched contains \"{}\" if {{\n{}}}\n",
            policy.id,
            policy.rego()
        );
    }
    module
}

/// Returns the policies as a policy set of Cedar: what matches is forbidden.
#[cfg(feature = "cedar")]
pub fn cedar(policies: &[Policy]) -> String {
    let mut all = "permit(principal, action, resource);\n".to_owned();
    for policy in policies {
        let _ = writeln!(
            all,
            "@id(\"{}\") forbid(principal, action, resource) when {{ {} }};",
            policy.id,
            policy.cedar()
        );
    }
    all
}

impl Policy {
    /// Returns the definition.
    pub fn native(&self) -> Json {
        let field = |name: &str, op: &str, value: Json| json!({"field": name, "op": op, "value": value});
        let mut all = Vec::new();
        if !self.tools.is_empty() {
            all.push(field("tool.id", "in", json!(self.tools)));
        }
        all.push(match &self.rest {
            OtherPolicies::TokensAbove(tokens) => field("llm.input_tokens", "gt", json!(tokens)),
            OtherPolicies::Labels(labels) => {
                field("classification.sensitivity_labels", "contains_any", json!(labels))
            }
            OtherPolicies::ServerNotIn(servers) => field("mcp.server_id", "not_in", json!(servers)),
            OtherPolicies::Users(users) => field("identity.user_id", "in", json!(users)),
            OtherPolicies::ModelStarts(start) => field("llm.model", "starts_with", json!(start)),
            OtherPolicies::Baggages(number) => field("tool.input.total_baggages", "gte", json!(number)),
            OtherPolicies::CallsAtLeast(number) => {
                json!({"eventCount": {"within": "10m", "op": "gte", "value": number,
                "where": {"field": "tool.id", "op": "in", "value": self.tools}}})
            }
        });
        let mut policy = json!({"id": self.id, "name": "benchmark", "evaluateOn": ["pre_tool"], "action": self.action,
            "acknowledgeBroadScope": true, "conditions": {"all": all}});
        if !self.groups.is_empty() {
            policy["appliesTo"] = json!({"groups": self.groups});
        }
        if matches!(self.rest, OtherPolicies::Baggages(_)) {
            policy["customFields"] = json!([{"field": "tool.input.total_baggages", "label": "baggages",
                "valueType": "number", "sourceType": "known_schema", "toolName": "book_reservation",
                "schemaVersionId": "1"}]);
        }
        policy
    }

    fn rego(&self) -> String {
        let mut body = String::new();
        if !self.groups.is_empty() {
            let _ = writeln!(
                body,
                "  some g in input.identity.group_ids\n  g in {}",
                set(&self.groups)
            );
        }
        if !self.tools.is_empty() {
            let _ = writeln!(body, "  input.tool.id in {}", set(&self.tools));
        }
        let _ = match &self.rest {
            OtherPolicies::TokensAbove(tokens) => writeln!(body, "  input.llm.input_tokens > {tokens}"),
            OtherPolicies::Labels(labels) => writeln!(
                body,
                "  some label in input.classification.sensitivity_labels\n  label in {}",
                set(labels)
            ),
            OtherPolicies::ServerNotIn(servers) => {
                writeln!(
                    body,
                    "  input.mcp.server_id\n  not input.mcp.server_id in {}",
                    set(servers)
                )
            }
            OtherPolicies::Users(users) => writeln!(body, "  input.identity.user_id in {}", set(users)),
            OtherPolicies::ModelStarts(start) => writeln!(body, "  startswith(input.llm.model, {start:?})"),
            OtherPolicies::Baggages(_) | OtherPolicies::CallsAtLeast(_) => {
                panic!("no twin of this condition is measured")
            }
        };
        body
    }

    #[cfg(feature = "cedar")]
    fn cedar(&self) -> String {
        let mut parts = Vec::new();
        if !self.groups.is_empty() {
            let groups: Vec<_> = self
                .groups
                .iter()
                .map(|group| format!("Group::{group:?}"))
                .collect();
            parts.push(format!("principal in [{}]", groups.join(", ")));
        }
        if !self.tools.is_empty() {
            parts.push(format!("{:?}.contains(context.tool)", self.tools));
        }
        parts.push(match &self.rest {
            OtherPolicies::TokensAbove(tokens) => format!("context has tokens && context.tokens > {tokens}"),
            OtherPolicies::Labels(labels) => format!("context.labels.containsAny({labels:?})"),
            OtherPolicies::ServerNotIn(servers) => format!("!({servers:?}.contains(context.server))"),
            OtherPolicies::Users(users) => format!("{users:?}.contains(context.user)"),
            OtherPolicies::ModelStarts(start) => format!("context.model like \"{start}*\""),
            OtherPolicies::Baggages(_) | OtherPolicies::CallsAtLeast(_) => {
                panic!("no twin of this condition is measured")
            }
        });
        parts.join(" && ")
    }
}

fn set<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| format!("{:?}", text.as_ref())).collect();
    format!("{{{}}}", texts.join(", "))
}

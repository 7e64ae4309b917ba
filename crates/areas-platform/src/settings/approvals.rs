//! Which acts one person alone does not do (F8.8, ADR 0126).

use provost_kernel::patch::RequiredChange;
use provost_kernel::word;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use std::borrow::Cow;

word! {
    /// Acts that need a second person where they are named. What decides who may say yes, and by what, needs one as soon as any of
    /// them is named: these settings, the routes of approvals, roles of admins and how admins sign in.
    pub enum ActOfTwo {
        /// What decides who may say yes, and by what, and nothing else.
        Deciders = "deciders",
        /// What gives somebody a role, a token, a way to sign in or a program that acts for them.
        Rights = "rights",
        /// What deletes people, groups, accounts and what acts as an account.
        Removals = "removals",
        /// What changes, switches off or deletes a policy, or takes one over.
        Policies = "policies",
        /// What lets a machine in, lets it go on, retires it or erases what is known of it.
        Devices = "devices",
    }
}

/// What needs a second person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["requireFor"]))]
pub struct Approvals {
    /// The acts that need the approval of a second person.
    pub require_for: Vec<ActOfTwo>,
}

impl Approvals {
    /// Returns every member with its JSON Pointer.
    pub(super) fn members(&self) -> [(&'static str, Value); 1] {
        let words = self.require_for.iter().map(|act| act.as_str());
        [("/approvals/requireFor", words.collect())]
    }
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct WantedApprovals {
    /// The acts that need the approval of a second person. Where any is named, changes of these settings and of whoever may approve
    /// need it as well, so that nobody takes one away alone.
    require_for: RequiredChange<Acts>,
}

/// Acts, each once, in the order in which they are declared.
#[derive(Clone, Debug)]
struct Acts(Vec<ActOfTwo>);

impl<'de> Deserialize<'de> for Acts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Vec::<ActOfTwo>::deserialize(deserializer)?;
        let all: Vec<ActOfTwo> = ActOfTwo::ALL
            .into_iter()
            .filter(|act| named.contains(act))
            .collect();
        if all.len() == named.len() {
            Ok(Self(all))
        } else {
            Err(de::Error::custom("must name each act once"))
        }
    }
}

impl JsonSchema for Acts {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ActsOfTwo".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let act = generator.subschema_for::<ActOfTwo>();
        json_schema!({ "type": "array", "items": act, "uniqueItems": true, "maxItems": ActOfTwo::ALL.len() })
    }
}

impl WantedApprovals {
    /// Returns what `base` becomes with what the body names.
    pub(super) fn applied(&self, base: &Approvals) -> Approvals {
        let named = self.require_for.get().map(|acts| acts.0.clone());
        Approvals {
            require_for: named.unwrap_or_else(|| base.require_for.clone()),
        }
    }
}

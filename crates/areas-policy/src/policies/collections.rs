//! The four families as collections of the API: the same operations under four paths.

use provost_policy::Family;

/// A collection of policies.
pub trait Collection: Send + Sync + 'static {
    /// Its family.
    const FAMILY: Family;
    /// The paths of the collection and of one policy.
    const PATHS: [&'static str; 2];
    /// The ids of the operations: create, get, update, delete.
    const IDS: [&'static str; 4];
    /// The CLI's group of commands.
    const GROUP: &'static str;
    /// What the operations do, in one line each: create, get, update, delete.
    const SAYS: [&'static str; 4];
    /// Examples of a body: create, update.
    const EXAMPLES: [&'static str; 2];
}

macro_rules! collections {
    ($($(#[$meta:meta])* $name:ident $family:ident $path:literal $word:literal $title:literal $example:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}

        impl Collection for $name {
            const FAMILY: Family = Family::$family;
            const PATHS: [&'static str; 2] = [concat!("/", $path), concat!("/", $path, "/{*policyId}")];
            const IDS: [&'static str; 4] = [
                concat!("createHeadless", $word),
                concat!("getHeadless", $word),
                concat!("updateHeadless", $word),
                concat!("deleteHeadless", $word),
            ];
            const GROUP: &'static str = $path;
            const SAYS: [&'static str; 4] = [
                concat!("Create ", $title),
                concat!("Read ", $title),
                concat!("Replace ", $title),
                concat!("Delete ", $title),
            ];
            const EXAMPLES: [&'static str; 2] = [
                concat!(r#"{"definition": "#, $example, "}"),
                concat!(r#"{"expectedRevision": 1, "definition": "#, $example, "}"),
            ];
        }
    )*};
}

collections! {
    /// What flows through prompts, tools and responses (client contract §3.5).
    ContentPolicies Content "content-policies" "ContentPolicy" "a content policy"
        r#"{"id": "no-shell", "name": "Shells need approval", "action": "require_approval", "evaluateOn": ["pre_tool"],
            "acknowledgeBroadScope": true, "conditions": {"field": "tool.id", "op": "eq", "value": "Bash"}}"#;
    /// Which AI products, routes and accounts are used at all (client contract §3.6).
    AccessPolicies Access "access-policies" "AccessPolicy" "an access policy"
        r#"{"id": "no-codex", "name": "Codex is reviewed", "action": "flag_for_review", "enforcementSurfaces": ["inline_hook"],
            "conditions": {"field": "product.id", "op": "eq", "value": "openai/codex"}}"#;
    /// Operations on data systems (client contract §3.7).
    ResourcePolicies Resource "resource-policies" "ResourcePolicy" "a resource policy"
        r#"{"id": "no-redis", "name": "Redis is blocked", "action": "block",
            "acknowledgeBroadScope": true, "conditions": {"field": "resource.protocol", "op": "eq", "value": "redis"}}"#;
    /// Who may use a skill (client contract §3.11).
    SkillAcls SkillAcl "skill-acls" "SkillAcl" "a skill ACL"
        r#"{"id": "no-reading", "skillId": "ski_01m7w5fpg4ctwq7mvve86yenbr", "effect": "block", "subjects": {"everyone": true}}"#;
}

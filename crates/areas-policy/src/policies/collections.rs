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
}

macro_rules! collections {
    ($($(#[$meta:meta])* $name:ident $family:ident $path:literal $word:literal $title:literal;)*) => {$(
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
        }
    )*};
}

collections! {
    /// What flows through prompts, tools and responses (client contract §3.5).
    ContentPolicies Content "content-policies" "ContentPolicy" "a content policy";
    /// Which AI products, routes and accounts are used at all (client contract §3.6).
    AccessPolicies Access "access-policies" "AccessPolicy" "an access policy";
    /// Operations on data systems (client contract §3.7).
    ResourcePolicies Resource "resource-policies" "ResourcePolicy" "a resource policy";
    /// Who may use a skill (client contract §3.11).
    SkillAcls SkillAcl "skill-acls" "SkillAcl" "a skill ACL";
}

//! How skills on devices stand beside the registry (F3.7, ADR 0136).
//!
//! ```text
//! digest of the folder ─ a withdrawn version has it ──► withdrawn      were it that of an available version, too
//!                      ├ an available one has it ─────► registered     whatever the folder is called
//!                      ├ none has it ─ name of a skill ─► modified
//!                      │              └ of none ────────► unregistered
//!                      └ the device could not say it ─► unknown
//! ```
//!
//! A scan makes the digest of a folder as the registry makes that of a package, so that the two are compared as they are. What of the
//! registry's tables is asked stands here.
//!
//! Absent on purpose: a standing that is stored. A skill is withdrawn in the registry, and each answer says so from then on.

use provost_areas_identity::words::{Kind, WordMatches, WordQuery, living};
use provost_kernel::OperationContext;
use provost_kernel::auth::Role::{self, Admin, Auditor, Operator};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::word;

word! {
    /// How a skill on devices stands beside the registry.
    // What a schema says of each word every model reads with the list of tools: the guide says it.
    pub enum SkillStanding {
        // It is a version of the registry that can be installed.
        Registered = "registered",
        // It is called like a skill of the registry, and is no version of any.
        Modified = "modified",
        // The registry has neither its files nor its name.
        Unregistered = "unregistered",
        // It is a version that was withdrawn, or of a skill that was.
        Withdrawn = "withdrawn",
        // Its device could not read all of its files.
        Unknown = "unknown",
    }
}

/// How the digest of an asset stands in the registry of its organization; nothing of what is no skill. What no version has is `unregistered`
/// here: names are compared by their match keys, which SQL cannot make. Most skills are none of the registry's, so that is asked first.
///
/// Keeps IN-14.
macro_rules! beside_registry {
    ($asset:literal) => {
        concat!(
            "CASE WHEN ",
            $asset,
            ".kind = 'skill' THEN CASE WHEN SUBSTR(",
            $asset,
            ".key, 1, 7) <> 'sha256:' THEN 'unknown' WHEN NOT EXISTS (SELECT 1 FROM skill_versions v WHERE v.organization_id = ",
            $asset,
            ".organization_id AND v.digest = ",
            $asset,
            ".key) THEN 'unregistered' WHEN EXISTS (SELECT 1 FROM skill_versions v CROSS JOIN skill_items i WHERE v.organization_id = ",
            $asset,
            ".organization_id AND v.digest = ",
            $asset,
            ".key AND i.organization_id = v.organization_id AND i.id = v.item_id AND (v.withdrawn_at IS NOT NULL OR i.withdrawn_at IS NOT \
             NULL)) THEN 'withdrawn' ELSE 'registered' END END"
        )
    };
}
pub(super) use beside_registry;

/// With it, people read the registry.
const REGISTRY: &str = "registry:read";
/// Who reads the registry.
const READERS: [Role; 3] = [Admin, Operator, Auditor];

/// Says whether the caller reads the registry: nobody else learns by an inventory what stands in it.
///
/// Keeps IN-14.
pub fn are_judged(ctx: &OperationContext<'_>) -> bool {
    let actor = ctx.actor();
    actor.has_role && READERS.contains(&actor.permission.role) && actor.permission.scopes.has(REGISTRY)
}

/// Refuses whoever asks for skills of a standing and does not read the registry.
///
/// Errors: `RoleForbidden`, `InsufficientScope`.
pub fn may_find(ctx: &OperationContext<'_>) -> Result<()> {
    if are_judged(ctx) {
        return Ok(());
    }
    let message = "who may not read the skill registry (registry:read) does not find skills by how they stand beside it; leave standing out";
    let actor = ctx.actor();
    if actor.has_role && READERS.contains(&actor.permission.role) {
        return Err(Error::new(Code::InsufficientScope, message).with("scope", REGISTRY));
    }
    Err(Error::new(Code::RoleForbidden, message))
}

/// Which of some names are those of skills of the registry.
pub struct Names(WordMatches);

impl Names {
    /// Looks names up, all of them at once.
    pub fn look_up<'n>(
        ctx: &mut OperationContext<'_>,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self> {
        let mut asked = WordQuery::default();
        for name in names {
            asked.add(Kind::Skill, name);
        }
        let org = ctx.org().to_owned();
        Ok(Self(living(&mut ctx.tx(), &org, &asked)?))
    }

    /// Returns how a skill stands whose digest stands so: a name makes nothing registered.
    ///
    /// Keeps IN-14.
    pub fn judge(&self, of_digest: SkillStanding, name: &str) -> SkillStanding {
        match of_digest {
            SkillStanding::Unregistered if !self.0.of(Kind::Skill, name).is_empty() => {
                SkillStanding::Modified
            }
            standing => standing,
        }
    }
}

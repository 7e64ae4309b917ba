//! From a path to the item and version that a caller may see.
//!
//! Keeps SK-2.

use super::model::{Item, VersionSummary, find, refuse_withdrawn};
use super::reference::{ItemRef, Reference};
use super::{model::SkillItemId, store};
use crate::skill_registry::fences;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result};

/// Returns the item that a path names, and the reference. What names nothing is no item, whatever is wrong with it.
///
/// A gateway token sees its own item alone, and nothing else is looked for: no answer says whether another exists.
///
/// Errors: `NotFound`.
pub fn item<'a>(ctx: &mut OperationContext<'_>, path: &'a ItemRef) -> Result<(Item, &'a Reference)> {
    let reference = path.0.as_ref().ok_or_else(absent)?;
    ctx.target(&fences::SKILL, reference.to_string());
    let found = match ctx.actor().item.as_deref() {
        Some(own) => {
            store::item_by_id(ctx, &SkillItemId::from_text(own))?.filter(|item| reference.names(item))
        }
        None => store::named(ctx, reference)?,
    };
    let item = found.ok_or_else(absent)?;
    ctx.target(&fences::SKILL, item.id.as_str());
    Ok((item, reference))
}

/// Returns the item and the version that a path names, if both can be installed.
///
/// Errors: `NotFound`; `Conflict` when the item or the version was withdrawn.
pub fn installable(ctx: &mut OperationContext<'_>, path: &ItemRef) -> Result<(Item, VersionSummary)> {
    let (item, reference) = item(ctx, path)?;
    refuse_withdrawn("this skill", item.withdrawn_at)?;
    let known = store::known(ctx, &item.id)?;
    let found = match find(&known, reference.version()) {
        Some(found) => found.clone(),
        None if reference.version().is_some() => return Err(absent()),
        // Every version was withdrawn, one by one.
        None => {
            let last = known.iter().filter_map(|k| k.withdrawn_at).max();
            refuse_withdrawn("every version of this skill", last)?;
            return Err(absent());
        }
    };
    refuse_withdrawn("this version of the skill", found.withdrawn_at)?;
    Ok((item, found))
}

/// The one answer to everything that names no item.
pub fn absent() -> Error {
    Error::not_found("skill")
}

//! Says how much an import would remove, before it is applied.

use super::super::READERS;
use super::super::store::{imports, removals};
use super::model::{ImportPath, Mode, Removals, State};
use crate::directory::fences;
use crate::subjects::{LostReference, lost_with, shown};
use provost_areas_platform::settings;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetRemovals;

/// What would go.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WouldGo {
    removals: Removals,
    /// What confirmRemovals must be if it is needed.
    sum: i64,
    /// Applying needs confirmRemovals.
    needs_confirmation: bool,
    /// The policies, ACLs, drafts and credentials that name what would go.
    lost_references: Vec<LostReference>,
}

impl Operation for GetRemovals {
    const META: Meta = Meta::read(
        "getHeadlessDirectoryImportRemovals",
        "/directory/imports/{importId}/removals",
        "directory",
    )
    .access("directory:read", READERS)
    .command("directory", "show-removals")
    .says(
        "Say how much an open import would remove",
        "The users, groups and memberships that go when the import is applied as it stands, and what names them. Of an import \
         that is not open nothing goes any more.",
    );
    type Path = ImportPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WouldGo;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<WouldGo> {
        ctx.target(&fences::IMPORT, input.path.import_id.as_str());
        let import = imports::get(ctx, &input.path.import_id)?;
        let is_open = import.state == State::Open;
        let replaces = is_open && import.mode == Mode::Replace;
        let removals = if is_open {
            removals::count(ctx, &import, replaces)?
        } else {
            Removals::default()
        };
        let max_percent = settings::load(ctx)?.directory.max_removal_percent;
        let lost_references = if replaces {
            let going = removals::going(ctx, &import)?;
            let lost = lost_with(ctx, going)?;
            shown(ctx, lost)
        } else {
            Vec::new()
        };
        Ok(WouldGo {
            lost_references,
            removals,
            sum: removals.sum(),
            needs_confirmation: replaces && removals.are_too_many(max_percent),
        })
    }
}

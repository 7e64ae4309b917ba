//! Takes a mapping away.

use super::model::MappingPath;
use super::store;
use crate::directory;
use crate::words::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct UnmapIdentity;

impl Operation for UnmapIdentity {
    const META: Meta = Meta::write(
        "unmapHeadlessDirectoryIdentity",
        Method::Delete,
        "/directory/identities/{mappingId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("history", "unmap-identity")
    .confirmed()
    .status(204)
    .says(
        "Take the mapping of a word away",
        "Policies about the user no longer hold for events that carry the word: it names nobody then.",
    );
    type Path = MappingPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let mapping = store::get(ctx, &input.path.mapping_id)?;
        ctx.target(&directory::fences::USER, mapping.user_id.as_str());
        store::delete(ctx, &mapping.id)?;
        ctx.change("/word", mapping.word.as_str(), Value::Null);
        ctx.change("/userId", mapping.user_id.as_str(), Value::Null);
        ctx.emit(&fences::UNMAPPED, &fences::OfMapping::of(&mapping));
        Ok(NoContent {})
    }
}

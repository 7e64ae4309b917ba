//! Takes a mapping away. Where a second person is wanted for what gives rights it is one of these acts, as mapping is: what is judged by a word
//! that names nobody passes what stood in its user's way.

use super::model::MappingPath;
use super::store;
use crate::directory;
use crate::directory::model::UserId;
use crate::words::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::{Value, json};

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
    .of_two(&["rights"])
    .says(
        "Take the mapping of a word away",
        "Policies about the user no longer hold for events that carry the word: it names nobody then.",
    );
    type Path = MappingPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    /// Which word it is, and whom it means so far: a mapping has an id that says neither.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let mapping = store::get(ctx, &input.path.mapping_id)?;
        let user = directory::who_they_are(ctx, &[UserId::from_text(&mapping.user_id)])?;
        Ok(json!({ "word": mapping.word, "userId": mapping.user_id, "users": user }))
    }

    /// Policies about the user hold no longer for whoever sends the word.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        Ok(vec![store::get(ctx, &input.path.mapping_id)?.user_id])
    }

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

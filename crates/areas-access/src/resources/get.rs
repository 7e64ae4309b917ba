//! `GET …/resources/{resourceId}`

use super::READERS;
use super::model::{ResourcePath, ResourceView, view};
use super::store;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetResource;

impl Operation for GetResource {
    const META: Meta = Meta::read("getHeadlessResource", "/resources/{resourceId}", "resources")
        .access("resources:read", READERS)
        .command("resources", "get")
        .says("Show a resource", "");
    type Path = ResourcePath;
    type Query = Empty;
    type Body = Empty;
    type Output = ResourceView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ResourceView> {
        let resource = store::get(ctx, &input.path.resource_id)?;
        Ok(view(ctx.org(), resource))
    }
}

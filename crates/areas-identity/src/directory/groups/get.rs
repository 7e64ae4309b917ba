//! Reads one group.

use super::super::model::{GroupPath, OneGroup};
use super::super::{READERS, store::groups};
use crate::directory::fences;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetGroup;

impl Operation for GetGroup {
    const META: Meta = Meta::read(
        "getHeadlessDirectoryGroup",
        "/directory/groups/{groupId}",
        "directory",
    )
    .access("directory:read", READERS)
    .command("groups", "get")
    .says("Read a group", "");
    type Path = GroupPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneGroup;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneGroup> {
        ctx.target(&fences::GROUP, input.path.group_id.as_str());
        let group = groups::get(ctx, &input.path.group_id)?;
        Ok(OneGroup { group: group.into() })
    }
}

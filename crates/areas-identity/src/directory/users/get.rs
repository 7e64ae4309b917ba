//! Reads one user.

use super::super::model::{OneUser, UserPath};
use super::super::{READERS, store::users};
use crate::directory::fences;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetUser;

impl Operation for GetUser {
    const META: Meta = Meta::read(
        "getHeadlessDirectoryUser",
        "/directory/users/{userId}",
        "directory",
    )
    .access("directory:read", READERS)
    .command("users", "get")
    .says("Read a user", "");
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneUser;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneUser> {
        ctx.target(&fences::USER, input.path.user_id.as_str());
        let user = users::get(ctx, &input.path.user_id)?;
        Ok(user.into())
    }
}

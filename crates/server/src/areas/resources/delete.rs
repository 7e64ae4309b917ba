//! `DELETE …/resources/{resourceId}`

use super::model::ResourcePath;
use super::ownership::Owner;
use super::store;
use crate::areas::resource_credentials;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{Cx, Result};

/// See [`Operation::META`].
pub struct DeleteResource;

impl Operation for DeleteResource {
    const META: Meta = Meta::write(
        "deleteHeadlessResource",
        Method::Delete,
        "/resources/{resourceId}",
        "resources",
    )
    .access("resources:write", &[Admin])
    .command("resources", "delete")
    .confirmed()
    .status(204)
    .says(
        "Delete a resource",
        "A resource that has credentials stays: delete them first, each has its own owner and its own secret.",
    );
    type Path = ResourcePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.resource_id;
        cx.target("resource", id.as_str());
        let resource = store::get(cx, id)?;
        let writer = Owner::calling(cx, input.manager.as_ref());
        resource.owner.admit(cx, writer)?;
        // INVARIANT RS-2: no credential outlives its resource, and none goes away with it silently.
        let count = resource_credentials::count(cx, id)?;
        if count > 0 {
            let message = format!("the resource still has credentials ({count}); delete them first");
            return Err(Error::new(Code::Conflict, message).with("credentials", count));
        }
        store::delete(cx, id)?;
        cx.change("/name", resource.name, serde_json::Value::Null);
        Ok(NoContent {})
    }
}

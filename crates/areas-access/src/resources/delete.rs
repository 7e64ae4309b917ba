//! `DELETE …/resources/{resourceId}`

use super::announcements::ResourceGoes;
use super::model::{Resource, ResourcePath};
use super::ownership::Owner;
use super::store;
use crate::resources::fences;
use provost_areas_identity::subjects::{DeletionAnswer, Record, losing, weighed};
use provost_areas_identity::words::{self, Kind};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

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
    .weighed()
    .status(204)
    .also(200)
    .says(
        "Delete a resource",
        "A resource that has credentials stays: delete them first, each has its own owner and its own secret. \
         Without confirm the refusal names as lostReferences which policies and drafts name it; so does the answer, which is \
         then 200.",
    );
    type Path = ResourcePath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeletionAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeletionAnswer> {
        let id = &input.path.resource_id;
        ctx.target(&fences::RESOURCE, id.as_str());
        let resource = store::get(ctx, id)?;
        let writer = Owner::calling(ctx, input.manager.as_ref());
        resource.owner.admit(ctx, writer)?;
        // INVARIANT RS-2: whoever needs the resource refuses here.
        ctx.announce(&ResourceGoes { id: id.clone() })?;
        let deleted = losing(ctx, record(&resource))?;
        let had = [resource.name.as_str(), resource.access_name.as_str()];
        words::end(ctx, Kind::Resource, id.as_str(), had)?;
        store::delete(ctx, id)?;
        ctx.change("/name", resource.name, Value::Null);
        Ok(deleted)
    }

    fn weigh(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        let resource = store::get(ctx, &input.path.resource_id)?;
        weighed(ctx, record(&resource))
    }
}

/// Returns a resource as policies may name it.
fn record(resource: &Resource) -> Record {
    Record {
        kind: Kind::Resource,
        id: resource.id.as_str().to_owned(),
        words: vec![resource.name.clone(), resource.access_name.clone()],
    }
}

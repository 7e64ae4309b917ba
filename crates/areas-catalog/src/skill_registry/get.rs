//! Reads an item with one of its versions.

use super::model::{ItemView, VersionView, find as find_version};
use super::reference::ItemPath;
use super::{find, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetSkillRegistryItem;

/// An item and a version of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ItemAndVersion {
    /// The item.
    pub item: ItemView,
    /// The version that the path names, else the latest; absent when every version was withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionView>,
}

impl Operation for GetSkillRegistryItem {
    const META: Meta = Meta::read(
        "getHeadlessSkillRegistryItem",
        "/skill-registry/{itemRef}",
        "registry",
    )
    .access("registry:read", &[Admin, Operator, Auditor])
    .command("skills", "show")
    .says(
        "Read a skill of the registry",
        "With the version that the reference names, else with the latest one that was not withdrawn.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ItemAndVersion;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ItemAndVersion> {
        let (item, reference) = find::item(ctx, &input.path.item_ref)?;
        let known = store::known(ctx, &item.id)?;
        let version = match find_version(&known, reference.version()) {
            Some(found) => Some(store::version_of(ctx, &item.id, &found.version.to_string())?),
            None if reference.version().is_some() => return Err(find::absent()),
            None => None,
        };
        Ok(ItemAndVersion {
            item: item.into(),
            version,
        })
    }
}

//! Withdraws an item, or one of its versions, for good.

use super::model::{Item, ItemView, VersionSummary, VersionView, find as find_version, latest};
use super::reference::ItemPath;
use super::{find, store, words};
use crate::skill_registry::fences;
use provost_areas_identity::subjects::{LostReference, Record, lost_with, shown, tell, weighed};
use provost_areas_identity::words::Kind;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub struct WithdrawSkillRegistryItem;

/// The item and what named it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WithdrawAnswer {
    /// The item.
    item: ItemView,
    /// The version that the path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<VersionView>,
    /// The policies and ACLs that name the item, when it goes as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    lost_references: Vec<LostReference>,
}

impl Operation for WithdrawSkillRegistryItem {
    const META: Meta = Meta::write(
        "withdrawHeadlessSkillRegistryItem",
        Method::Post,
        "/skill-registry/{itemRef}/withdraw",
        "registry",
    )
    .access("registry:write", &[Admin])
    .command("skills", "withdraw")
    .weighed()
    .says(
        "Withdraw a skill, or one version of it",
        "From the next request on nobody can install it or fetch its content; what is installed can be \
         uninstalled. Nothing undoes it: publish another version, or another skill. Withdrawing it again changes \
         nothing. Without confirm the refusal names as lostReferences which policies and ACLs name the skill; the answer does \
         too.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WithdrawAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<WithdrawAnswer> {
        let (mut item, reference) = find::item(ctx, &input.path.item_ref)?;
        let at = item.changed_at(ctx.now());
        let mut known = store::known(ctx, &item.id)?;
        let wanted = reference.version();
        let version = match wanted {
            Some(_) => Some(
                find_version(&known, wanted)
                    .ok_or_else(find::absent)?
                    .version
                    .to_string(),
            ),
            None => None,
        };
        let mut lost_references = Vec::new();
        if version.is_none() && item.withdrawn_at.is_none() {
            lost_references = {
                let record = record(ctx, &item)?;
                lost_with(ctx, vec![record])?
            };
            tell(ctx, &lost_references)?;
        }
        let changed = match &version {
            Some(version) => withdraw_version(ctx, &mut known, &item.id, version, at)?,
            None if item.withdrawn_at.is_none() => {
                item.withdrawn_at = Some(at);
                ctx.change("/withdrawnAt", Value::Null, at.to_rfc3339());
                true
            }
            None => false,
        };
        if changed {
            item.latest_version = latest(&known).map(|k| k.version.to_string());
            item.updated_at = at;
            store::save_item(ctx, &item)?;
            let data = fences::Withdrawal {
                item_id: item.id.clone(),
                version: version.clone(),
            };
            ctx.emit(&fences::WITHDRAWN, &data);
        }
        let version = match version {
            Some(version) => Some(store::version_of(ctx, &item.id, &version)?),
            None => None,
        };
        Ok(WithdrawAnswer {
            item: item.into(),
            version,
            lost_references: shown(ctx, lost_references),
        })
    }

    fn weigh(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        let (item, reference) = find::item(ctx, &input.path.item_ref)?;
        match reference.version() {
            None if item.withdrawn_at.is_none() => {
                let record = record(ctx, &item)?;
                weighed(ctx, record)
            }
            _ => Ok(None),
        }
    }
}

/// Returns an item as policies may name it.
fn record(ctx: &mut OperationContext<'_>, item: &Item) -> Result<Record> {
    let others = words::of(ctx, &item.id)?;
    let names = [item.full_name(), item.name.clone()];
    Ok(Record {
        kind: Kind::Skill,
        id: item.id.as_str().to_owned(),
        words: names.into_iter().chain(others.into_values()).collect(),
    })
}

/// Withdraws one version, unless it is withdrawn already.
fn withdraw_version(
    ctx: &mut OperationContext<'_>,
    known: &mut [VersionSummary],
    item: &super::model::SkillItemId,
    version: &str,
    at: provost_kernel::Timestamp,
) -> Result<bool> {
    let meant = |k: &&mut VersionSummary| k.version.to_string() == version && k.withdrawn_at.is_none();
    let Some(there) = known.iter_mut().find(meant) else {
        return Ok(false);
    };
    there.withdrawn_at = Some(at);
    ctx.change("/versions/withdrawn", Value::Null, version);
    store::withdraw_version(ctx, item, version, at)?;
    Ok(true)
}

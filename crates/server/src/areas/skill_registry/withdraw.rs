//! Withdraws an item, or one of its versions, for good.

use super::get::ItemAndVersion;
use super::model::{Known, find as find_version, latest};
use super::reference::ItemPath;
use super::{find, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result};
use serde_json::{Value, json};

/// See [`Operation::META`].
pub struct WithdrawSkillRegistryItem;

impl Operation for WithdrawSkillRegistryItem {
    const META: Meta = Meta::write(
        "withdrawHeadlessSkillRegistryItem",
        Method::Post,
        "/skill-registry/{itemRef}/withdraw",
        "registry",
    )
    .access("registry:write", &[Admin])
    .command("skills", "withdraw")
    .confirmed()
    .says(
        "Withdraw a skill, or one version of it",
        "From the next request on nobody can install it or fetch its content; what is installed can be \
         uninstalled. Nothing undoes it: publish another version, or another skill. Withdrawing it again changes \
         nothing.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ItemAndVersion;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ItemAndVersion> {
        let (mut item, reference) = find::item(cx, &input.path.item_ref)?;
        let at = item.changed_at(cx.now());
        let mut known = store::known(cx, &item.id)?;
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
        let changed = match &version {
            Some(version) => withdraw_version(cx, &mut known, &item.id, version, at)?,
            None if item.withdrawn_at.is_none() => {
                item.withdrawn_at = Some(at);
                cx.change("/withdrawnAt", Value::Null, at.to_rfc3339());
                true
            }
            None => false,
        };
        if changed {
            item.latest_version = latest(&known).map(|k| k.version.to_string());
            item.updated_at = at;
            store::save_item(cx, &item)?;
            let mut data = json!({ "itemId": item.id });
            if let Some(version) = &version {
                data["version"] = version.as_str().into();
            }
            cx.emit("registry.item.withdrawn", data);
        }
        let version = match version {
            Some(version) => Some(store::version_of(cx, &item.id, &version)?),
            None => None,
        };
        Ok(ItemAndVersion {
            item: item.into(),
            version,
        })
    }
}

/// Withdraws one version, unless it is withdrawn already.
fn withdraw_version(
    cx: &mut Cx<'_>,
    known: &mut [Known],
    item: &super::model::SkillItemId,
    version: &str,
    at: provost_kernel::Timestamp,
) -> Result<bool> {
    let meant = |k: &&mut Known| k.version.to_string() == version && k.withdrawn_at.is_none();
    let Some(there) = known.iter_mut().find(meant) else {
        return Ok(false);
    };
    there.withdrawn_at = Some(at);
    cx.change("/versions/withdrawn", Value::Null, version);
    store::withdraw_version(cx, item, version, at)?;
    Ok(true)
}

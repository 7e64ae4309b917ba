//! Lets those act again whom a restore holds back.

use super::model::{self, HeldView, Kind, kinds};
use crate::areas::restore::fences;
use provost_areas_identity::directory;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::held::Held;
use provost_kernel::json::canonical;
use provost_kernel::keys::MacPurpose;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, hex::hex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct ReleaseHeld;

/// The hash of who acts by what is held, under a key of the installation: it binds whose a machine is, and says it to nobody.
const ACTING: MacPurpose = MacPurpose::Own("provost/mac/restore-acting/v1");
/// LIMIT: ids of one request.
const MAX_IDS: usize = 100;

/// Whom to release; exactly one member.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend(
    "oneOf" = [
        { "required": ["all"], "properties": { "all": { "const": true } } },
        { "required": ["ids"], "properties": { "ids": { "type": "array" } } },
    ],
))]
pub struct ReleaseBody {
    /// `true`: everybody who is held.
    all: Option<bool>,
    /// 1 to 100 ids of service accounts, users, clients, workload trusts and devices. The links of a user are released with
    /// the user.
    #[schemars(length(min = 1, max = 100))]
    ids: Option<Vec<String>>,
}

/// Who acts again.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[expect(clippy::struct_field_names, reason = "the names on the wire")]
pub struct ReleaseResult {
    /// The service accounts.
    service_account_ids: Vec<String>,
    /// The users, those included whose identity links alone were held.
    user_ids: Vec<String>,
    /// The registered clients.
    mcp_client_ids: Vec<String>,
    /// The workload trusts.
    workload_trust_ids: Vec<String>,
    /// The devices.
    device_ids: Vec<String>,
}

impl Operation for ReleaseHeld {
    const META: Meta = Meta::write(
        "releaseHeadlessRestoreHeld",
        Method::Post,
        "/restore/release",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("restore", "release")
    .example(r#"{"ids": ["sa_01m7w5fpg4ctwq7mvve86yenbr"]}"#)
    .confirmed()
    .of_two(&["rights", "devices"])
    .of_deciders()
    .says(
        "Let those act again whom a restore holds back",
        "Look at the list of held records first: what was taken away after the backup was made would come back. Tokens stay \
         revoked; rotate them. Nobody releases what could do more than they can. A workload trust needs `workload_trusts:write` and \
         `service_accounts:rotate` besides, and an account that is not held back itself (409). A device needs `fleet:write` besides. An id that is not held is a \
         404. Where one is refused nobody is released.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = ReleaseBody;
    type Output = ReleaseResult;

    fn validate(input: &Input<Self>) -> Result<()> {
        let body = &input.body;
        match (body.all == Some(true), &body.ids) {
            (true, None) => Ok(()),
            (false, Some(ids)) if (1..=MAX_IDS).contains(&ids.len()) => Ok(()),
            (false, Some(_)) => Err(Error::invalid("/ids", "must hold 1 to 100 ids")),
            _ => Err(Error::invalid("", "needs exactly one of all (true) and ids")),
        }
    }

    /// What they are: an id says nothing, and `all` less. Whose they are is bound by a digest where it is not shown.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let mut shown = Vec::new();
        for (kind, held) in model::of(ctx, input.body.ids.as_deref())? {
            let (accounts, acting) = (accounts_of(&held), json!([ctx.org(), held.id, held.acting]));
            let acting = hex(&ctx.services().keys.mac(ACTING, &[canonical(&acting).as_bytes()]));
            let mut one = serde_json::to_value(HeldView::of(kind, held)).map_err(Error::internal)?;
            one["serviceAccountIds"] = json!(accounts);
            one["acting"] = acting.into();
            shown.push(one);
        }
        Ok(json!({ "held": shown }))
    }

    /// Whoever acts again, whose machine does, and as whom.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let held = model::of(ctx, input.body.ids.as_deref())?;
        Ok(held.into_iter().flat_map(|(_, held)| held.acting).collect())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ReleaseResult> {
        ctx.target(&fences::HELD, "held");
        let released = match &input.body.ids {
            None => everybody(ctx)?,
            Some(ids) => these(ctx, ids)?,
        };
        let kinds = [
            ("/serviceAccountIds", &released.service_account_ids),
            ("/userIds", &released.user_ids),
            ("/mcpClientIds", &released.mcp_client_ids),
            ("/workloadTrustIds", &released.workload_trust_ids),
            ("/deviceIds", &released.device_ids),
        ];
        for id in &released.user_ids {
            directory::note_hand(ctx, id)?;
        }
        for (path, ids) in kinds.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            ctx.change(path, Value::Null, json!(ids));
        }
        let [service_accounts, users, mcp_clients, workload_trusts, devices] =
            kinds.map(|(_, ids)| ids.len());
        ctx.emit(
            &fences::RELEASED,
            &fences::ReleasedPrincipals {
                service_accounts,
                users,
                mcp_clients,
                workload_trusts,
                devices,
            },
        );
        Ok(released)
    }
}

/// Returns the accounts that act by what is held.
fn accounts_of(held: &Held) -> Vec<String> {
    let accounts = held.acting.iter().filter(|id| id.starts_with("sa_"));
    accounts.cloned().collect()
}

impl ReleaseResult {
    /// Returns the ids of a kind; those of links stand among the users.
    fn of(&mut self, kind: Kind) -> &mut Vec<String> {
        match kind {
            Kind::ServiceAccount => &mut self.service_account_ids,
            Kind::User | Kind::IdentityLink => &mut self.user_ids,
            Kind::McpClient => &mut self.mcp_client_ids,
            Kind::WorkloadTrust => &mut self.workload_trust_ids,
            Kind::Device => &mut self.device_ids,
        }
    }
}

fn everybody(ctx: &mut OperationContext<'_>) -> Result<ReleaseResult> {
    let mut released = ReleaseResult::default();
    for (kind, held) in kinds(ctx)? {
        released.of(kind).extend((held.release)(ctx, None)?);
    }
    released.user_ids.sort_unstable();
    released.user_ids.dedup();
    Ok(released)
}

/// Releases those of these ids, kind by kind in the order of the areas: an account before the trusts that act as it, however
/// the caller put them.
fn these(ctx: &mut OperationContext<'_>, ids: &[String]) -> Result<ReleaseResult> {
    // PostgreSQL takes no NUL in a text, and no id has one.
    if ids.iter().any(|id| id.contains('\0')) {
        return Err(Error::new(Code::NotFound, "no id has the character U+0000"));
    }
    let mut released = ReleaseResult::default();
    let mut is_held = vec![false; ids.len()];
    for (kind, held) in kinds(ctx)? {
        for (id, is_held) in ids.iter().zip(&mut is_held) {
            if (held.release)(ctx, Some(id))?.is_empty() {
                continue;
            }
            *is_held = true;
            let known = released.of(kind);
            // A user and the links of that user have one id.
            if !known.contains(id) {
                known.push(id.clone());
            }
        }
    }
    if let Some(place) = is_held.iter().position(|is_held| !is_held) {
        let message =
            format!("the id at /ids/{place} is not held back; the list of held records names those that are");
        return Err(Error::new(Code::NotFound, message));
    }
    Ok(released)
}

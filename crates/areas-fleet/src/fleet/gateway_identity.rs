//! `GET`, `PUT`, `DELETE …/devices/{deviceId}/gateway-identity`: whom gateways take a device for (client contract #48–50).

use super::model::{Device, DeviceId, Reach, Status};
use super::sight::Sight;
use super::taken::{self, Assignment, Resolution, Taken};
use super::view::DevicePath;
use super::{fences, owners, standing, store};
use provost_areas_access::resources::ownership::Owner;
use provost_areas_identity::service_accounts;
use provost_areas_identity::subjects::SubjectKind;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Manager, Meta, Method, NoContent, Operation};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whom gateways take a device for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceGatewayIdentity")]
pub struct GatewayIdentity {
    device_id: DeviceId,
    resolution: Resolution,
    subject_kind: SubjectKind,
    /// The service account, or the user who owns the device; where people are pseudonymous, what stands for a user.
    subject_id: String,
    /// What gateways call the device, whomever it is taken for.
    managed_principal_id: String,
    /// How often an account was assigned or taken away.
    revision: i64,
}

pub struct GetGatewayIdentity;
pub struct PutGatewayIdentity;
pub struct DeleteGatewayIdentity;

const PATH: &str = "/devices/{deviceId}/gateway-identity";

/// Errors: `NotFound` where gateways take the device for nobody.
fn resolve(ctx: &mut OperationContext<'_>, device: &Device) -> Result<GatewayIdentity> {
    match taken::resolve(ctx, device)? {
        Taken::For(resolution, subject_kind, id) => Ok(GatewayIdentity {
            device_id: device.id.clone(),
            resolution,
            subject_kind,
            subject_id: Sight::load(ctx)?.subject(id),
            managed_principal_id: device.id.as_str().replacen("dev_", "mdp_", 1),
            revision: taken::assigned(ctx, &device.id)?.revision,
        }),
        Taken::Nobody(why) => {
            let why = shown(ctx, device, why)?;
            let message = format!("gateways take the device for nobody: {why}");
            Err(Error::new(Code::NotFound, message))
        }
    }
}

/// Returns why gateways take a device for nobody, as the caller may know it: who is suspended, and what somebody can do, stands in the
/// directory beside the name.
///
/// Keeps PV-1.
fn shown(ctx: &mut OperationContext<'_>, device: &Device, why: &'static str) -> Result<&'static str> {
    let is_of_owner = taken::OF_OWNERS.contains(&why);
    let sight = Sight::load(ctx)?;
    let is_seen = device
        .owner
        .as_ref()
        .is_none_or(|owner| sight.shows(&owner.user_id));
    if is_seen || !is_of_owner {
        return Ok(why);
    }
    Ok("its owner is suspended, deleted, or can do more than whoever named the owner could give")
}

impl Operation for GetGatewayIdentity {
    const META: Meta = Meta::read("getHeadlessDeviceGatewayIdentity", PATH, "fleet")
        .access("llm_gateway:read", &[Admin, Operator, Auditor])
        .command("devices", "gateway-identity")
        .says(
            "Show whom gateways take a device for",
            "The service account that is assigned to it, or else its owner. 404 where it is nobody: the device is not active, the \
             account is disabled or deleted, the owner is suspended, or either can do more than whoever said so could give.",
        );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = GatewayIdentity;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<GatewayIdentity> {
        let device = store::get(ctx, &input.path.device_id)?;
        resolve(ctx, &device)
    }
}

/// Whom gateways are to take a device for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AssignBody {
    /// The service account.
    service_account_id: Name,
    /// By what it was assigned, in the caller's words.
    source: Option<Name>,
}

impl Operation for PutGatewayIdentity {
    const META: Meta = Meta::write("putHeadlessDeviceGatewayIdentity", Method::Put, PATH, "fleet")
        .access(taken::SCOPE, &[Admin])
        .command("devices", "assign-gateway-identity")
        .example(r#"{"serviceAccountId": "sa_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#)
        .of_two(&["rights"])
    .says(
            "Assign a service account to a device",
            "Gateways take the device for it. The device is active and the account enabled, or it is 409. Whoever assigns an \
             account holds all that it can do and could do. Sent with both manager headers, the assignment is that manager's and the \
             caller's, and nobody else changes it.",
        );
    type Path = DevicePath;
    type Query = Empty;
    type Body = AssignBody;
    type Output = GatewayIdentity;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let mut shown = super::shown_to_voters(ctx, &input.path.device_id)?;
        shown["serviceAccount"] =
            service_accounts::shown_to_voters(ctx, input.body.service_account_id.as_str())?;
        Ok(shown)
    }

    /// Whoever has the machine calls as the account.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        standing::owner(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<GatewayIdentity> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let device = store::get(ctx, id)?;
        must_act(&device)?;
        let account = input.body.service_account_id.as_str();
        let caller = Reach(ctx.actor().permission);
        may_assign(ctx, account, caller)?;
        let before = taken::assigned(ctx, id)?;
        let manager = managed(ctx, &before, input.manager.as_ref())?;
        let is_known = before.account.as_deref() == Some(account)
            && before.manager == manager
            && taken::account_is_within(ctx, account, before.reach)?;
        if !is_known {
            taken::assign(ctx, id, Some(account), caller, &manager)?;
            note_manager(ctx, &before.manager, &manager);
            // Where it is the same account, it is the word of somebody else that counts from now on.
            let former = before.account.filter(|former| former != account);
            ctx.change("/gatewayIdentity", former, account);
            if let Some(source) = &input.body.source {
                ctx.change("/gatewayIdentitySource", Value::Null, source.as_str());
            }
            emit(ctx, id);
        }
        resolve(ctx, &device)
    }

    fn recheck(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<()> {
        let caller = Reach(ctx.actor().permission);
        let is_within = taken::account_is_within(ctx, input.body.service_account_id.as_str(), caller)?;
        if is_within { Ok(()) } else { Err(taken::beyond()) }
    }
}

/// Returns who manages an assignment that the caller changes: whoever made it (RS-1). Where no account is assigned, the caller does.
///
/// Errors: `Conflict` when it is somebody else's.
fn managed(ctx: &mut OperationContext<'_>, before: &Assignment, calling: Option<&Manager>) -> Result<Owner> {
    let writer = Owner::calling(ctx, calling);
    match before.account {
        Some(_) => before.manager.admit(ctx, writer),
        None => Ok(writer),
    }
}

fn note_manager(ctx: &mut OperationContext<'_>, before: &Owner, after: &Owner) {
    let ([manager, instance, _], [new_manager, new_instance, _]) = (before.columns(), after.columns());
    ctx.change("/managementMode", before.mode(), after.mode());
    ctx.change("/managerId", manager, new_manager);
    ctx.change("/managerInstance", instance, new_instance);
}

/// Errors: `Conflict` for a device that gateways take for nobody.
fn must_act(device: &Device) -> Result<()> {
    if device.status == Status::Active && device.held_at.is_none() {
        return Ok(());
    }
    let status = device.status.as_str();
    let message = match device.held_at {
        Some(_) => "a restore of the store holds the device back; release it first".to_owned(),
        None => format!("the device is {status}; an account is assigned to one that is active"),
    };
    Err(Error::new(Code::Conflict, message).with("status", status))
}

/// Says whether the caller may have a device be taken for an account.
///
/// Keeps FL-7.
///
/// Errors: `Conflict` for an account that is none or is disabled, `EscalationForbidden`.
fn may_assign(ctx: &mut OperationContext<'_>, id: &str, caller: Reach) -> Result<()> {
    let org = ctx.org();
    let account = service_accounts::principal(&mut ctx.tx(), org, id)?;
    if account.is_none_or(|account| !account.enabled) {
        let message = "there is no service account of this id that is enabled; name another one";
        return Err(Error::new(Code::Conflict, message));
    }
    if taken::account_is_within(ctx, id, caller)? {
        return Ok(());
    }
    Err(taken::beyond())
}

fn emit(ctx: &mut OperationContext<'_>, id: &DeviceId) {
    let of = fences::OfDevice {
        device_id: id.clone(),
    };
    ctx.emit(&fences::GATEWAY_IDENTITY_CHANGED, &of);
}

impl Operation for DeleteGatewayIdentity {
    const META: Meta = Meta::write(
        "deleteHeadlessDeviceGatewayIdentity",
        Method::Delete,
        PATH,
        "fleet",
    )
    .access(taken::SCOPE, &[Admin])
    .command("devices", "remove-gateway-identity")
    .status(204)
    .of_two(&["rights"])
    .says(
        "Take a service account away from a device",
        "Gateways take the device for its owner again, if it has one. An owner who can do more than the caller has to be named \
         again by somebody who may.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    /// Gateways take the device for its owner again.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        super::shown_to_voters(ctx, &input.path.device_id)
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        standing::owner(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        store::get(ctx, id)?;
        let before = taken::assigned(ctx, id)?;
        managed(ctx, &before, input.manager.as_ref())?;
        note_manager(ctx, &before.manager, &Owner::Service);
        if let Some(before) = before.account {
            unassign(ctx, id, &before, Reach(ctx.actor().permission))?;
            emit(ctx, id);
        }
        Ok(NoContent {})
    }
}

/// Takes an account away from a device, which is taken for its owner from then on as far as whoever does so could give that.
///
/// Keeps FL-7.
pub fn unassign(ctx: &mut OperationContext<'_>, id: &DeviceId, account: &str, by: Reach) -> Result<()> {
    taken::assign(ctx, id, None, by, &Owner::Service)?;
    ctx.change("/gatewayIdentity", account, Value::Null);
    let mut device = store::get(ctx, id)?;
    owners::weaken(ctx, &mut device, by)
}

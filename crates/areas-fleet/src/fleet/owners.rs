//! Whose machine a device is.
//!
//! An owner is a user of the organization, named by somebody who may say whom gateways take a device for: without an account
//! that is assigned to it they take it for its owner. With the user the device loses its owner.
//!
//! INVARIANT FL-15: what a person reads as of a machine of their own was said by it since they own it, by the server's clock and by the
//! machine's: neither what was found and told while it was somebody else's, nor what was found then and reported later. The machine's
//! own record is its owner's whole.

use super::kept::ToldOfDevice;
use super::model::{Device, DeviceId, MOST_OWNED, Owner, Reach, Status};
use super::sight::Sight;
use super::{fences, store, taken};
use provost_areas_identity::directory;
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::auth::Role::{self, Admin, Auditor, Operator};
use provost_kernel::db::{Param, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use serde_json::{Value, json};

statements! {
    /// The devices of an owner, the retired ones among them. In the order of the index by owners: by their ids SQLite would read all
    /// devices of the organization, at every user who goes.
    OWNED = "SELECT id, COALESCE(owned_since, updated_at), created_at, owned_events, owned_passed FROM devices WHERE organization_id = ?1 AND owner_user_id = ?2 ORDER BY seq";
    /// Whose machine a device is, and whom gateways take it for.
    HOLDERS = "SELECT d.owner_user_id, g.service_account_id FROM devices d LEFT JOIN device_gateway_identities g ON g.organization_id = d.organization_id AND g.device_id = d.id WHERE d.organization_id = ?1 AND d.id = ?2";
    /// Whose machines gateways take for an account.
    OF_ACCOUNT = "SELECT DISTINCT d.owner_user_id FROM device_gateway_identities g CROSS JOIN devices d WHERE g.organization_id = ?1 AND g.service_account_id = ?2 AND d.organization_id = g.organization_id AND d.id = g.device_id AND d.owner_user_id IS NOT NULL AND d.status <> 'retired' LIMIT 5001";
    /// Takes a user away from every device.
    DISOWN = "UPDATE devices SET owner_user_id = NULL, owner_reach_role = NULL, owner_reach_scopes = NULL, owned_since = NULL, owned_events = NULL, owned_passed = NULL, updated_at = CASE WHEN updated_at < ?3 THEN ?3 ELSE updated_at + 1 END WHERE organization_id = ?1 AND owner_user_id = ?2";
}

/// LIMIT: owners of machines that are taken for one account. Ours: the machines of a large company, read in some milliseconds.
const MOST_OF_ACCOUNT: usize = 5_000;

/// Who sees whose machines devices are: those who may read the directory. Others see their own.
const SEEING: [Role; 3] = [Admin, Operator, Auditor];

/// With it, people read the directory.
const DIRECTORY: &str = "directory:read";

/// Says whether the caller sees whose machines devices are.
pub fn are_seen(ctx: &OperationContext<'_>) -> bool {
    let actor = ctx.actor();
    actor.has_role && SEEING.contains(&actor.permission.role) && actor.permission.scopes.has(DIRECTORY)
}

/// Refuses whoever asks for devices of an owner and does not see owners.
///
/// Errors: `RoleForbidden`, `InsufficientScope`.
pub fn may_find(ctx: &OperationContext<'_>) -> Result<()> {
    if are_seen(ctx) {
        return Ok(());
    }
    let message =
        "who may not read the directory does not find devices by their owners; GET /devices/own has your own";
    let actor = ctx.actor();
    if actor.has_role && SEEING.contains(&actor.permission.role) {
        return Err(Error::new(Code::InsufficientScope, message).with("scope", DIRECTORY));
    }
    Err(Error::new(Code::RoleForbidden, message))
}

/// Returns the ids of whose machine a device is and whom gateways take it for; none of a device that there is not.
pub fn holders(tx: &mut Tx<'_>, organization: &str, device: &str) -> Result<Vec<String>> {
    let held = tx.query_opt(&HOLDERS, params![organization, device], |row| {
        Ok([row.get::<Option<String>>(0)?, row.get::<Option<String>>(1)?])
    })?;
    Ok(held.into_iter().flatten().flatten().collect())
}

/// Returns the ids of whose machines gateways take for an account: each of them calls as the account.
///
/// Errors: `Unavailable` when they are too many to say it.
pub fn of_account(tx: &mut Tx<'_>, organization: &str, account: &str) -> Result<Vec<String>> {
    let found = tx.query(&OF_ACCOUNT, params![organization, account], |row| {
        row.get::<String>(0)
    })?;
    if found.len() > MOST_OF_ACCOUNT {
        return Err(Error::unavailable(
            "too many machines are taken for one account for the server to say who stands behind it",
        ));
    }
    Ok(found)
}

/// Names the owner of a device.
///
/// Keeps FL-7, FL-15.
///
/// Errors: `InsufficientScope`; `Conflict` for a retired device and for a user who owns too many; `InvalidDefinition` for an id
/// that names no user of the organization; `EscalationForbidden`; `Unavailable` for another owner while the clock is set back.
pub fn name(ctx: &mut OperationContext<'_>, device: &mut Device, user: &str) -> Result<()> {
    let is_same = device.owner.as_ref().is_some_and(|owner| owner.user_id == user);
    if !Sight::load(ctx)?.shows(user) {
        // A right guess would be answered otherwise than a wrong one.
        taken::may_say(ctx)?;
    }
    let reach = Reach(ctx.actor().permission);
    let known = device.owner.as_ref().filter(|_| is_same).map(|owner| owner.reach);
    if let Some(known) = known
        && taken::owner_is_within(ctx, user, known)?
        && (known.covers(reach) || taken::may_say(ctx).is_err())
    {
        // The word that counts already is worth no less.
        return Ok(());
    }
    taken::may_say(ctx)?;
    if device.status == Status::Retired {
        let message = "the device is retired; nobody is named its owner any more";
        return Err(Error::new(Code::Conflict, message).with("status", device.status.as_str()));
    }
    if !is_same && ctx.services().is_set_back() {
        let message = "the clock of this server was set back, so that nobody can say which reports are of the time before; an operator sets it \
                       right, or says that it is right (provost store accept --clock)";
        return Err(Error::unavailable(message));
    }
    let owner = fitting(ctx, user, is_same)?;
    if let Some(known) = known {
        ctx.change("/ownerReach", known.words(), reach.words());
    }
    device.owner = Some(owner);
    Ok(())
}

/// Returns the owner of the machine that an enrolment token is for, by the caller's word.
///
/// Keeps FL-7.
///
/// Errors: as of [`name`].
pub fn of_token(ctx: &mut OperationContext<'_>, user: &str) -> Result<Owner> {
    taken::may_say(ctx)?;
    fitting(ctx, user, false)
}

/// Returns a user as an owner whom the caller can name; one more machine is theirs, or the same as before.
///
/// Keeps FL-7.
fn fitting(ctx: &mut OperationContext<'_>, user: &str, is_same: bool) -> Result<Owner> {
    let (org, reach) = (ctx.org(), Reach(ctx.actor().permission));
    if directory::principal(&mut ctx.tx(), org, user)?.is_none() {
        let message = "names no user of the organization";
        return Err(Error::unfit("/ownerUserId", message));
    }
    if !taken::owner_is_within(ctx, user, reach)? {
        return Err(taken::beyond());
    }
    if !is_same && count(ctx, user)? >= MOST_OWNED {
        return Err(too_many());
    }
    Ok(Owner {
        user_id: user.to_owned(),
        reach,
    })
}

/// Refuses a machine whose enrolment token names an owner who is no user any more: nobody said that it is to be nobody's.
///
/// Errors: `Conflict`.
pub fn must_be_there(ctx: &mut OperationContext<'_>, owner: &Owner) -> Result<()> {
    let org = ctx.org();
    if directory::principal(&mut ctx.tx(), org, &owner.user_id)?.is_some() {
        return Ok(());
    }
    let message = "the user whose machine this enrolment token makes was deleted; ask for another token";
    Err(Error::new(Code::Conflict, message))
}

/// Notes for the audit entry that the caller named the owner of before, where people are pseudonymous: it changes nothing, and says whose
/// machine this is.
pub fn note_asked(ctx: &mut OperationContext<'_>, before: &Device, user: &str) -> Result<()> {
    let is_same = before.owner.as_ref().is_some_and(|owner| owner.user_id == user);
    if is_same && !Sight::load(ctx)?.shows(user) {
        ctx.change("/ownerNamed", Value::Null, user);
    }
    Ok(())
}

/// Has a device be taken for its owner no further than somebody could give who takes an account away, whatever the owner can do now:
/// the owner may be given more as soon as that is done.
///
/// Keeps FL-7.
pub fn weaken(ctx: &mut OperationContext<'_>, device: &mut Device, by: Reach) -> Result<()> {
    let Some(owner) = &mut device.owner else {
        return Ok(());
    };
    let (before, after) = (owner.reach, owner.reach.and(by));
    if after == before {
        return Ok(());
    }
    owner.reach = after;
    device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
    store::describe(ctx, device)?;
    ctx.change("/ownerReach", before.words(), after.words());
    Ok(())
}

/// Returns how many devices a user owns, the retired ones among them.
pub fn count(ctx: &mut OperationContext<'_>, user: &str) -> Result<usize> {
    Ok(owned(ctx, user)?.len())
}

/// The refusal of one more device for somebody who owns as many as anybody may.
pub fn too_many() -> Error {
    let message = "this user owns 32 devices, the retired ones among them; take some away first";
    Error::new(Code::Conflict, message)
}

/// A device, and since when its owner has it.
#[derive(Clone, Debug)]
pub struct Owned {
    /// The device.
    pub id: DeviceId,
    /// Since when: at the latest, where the owner was named before this was kept.
    pub since: Timestamp,
    /// Whether nobody had it before.
    is_first: bool,
    /// How many events it had told by then, and how often it had told that something passed.
    told_before: Option<(i64, i64)>,
}

impl Owned {
    /// Says whether a look that began at an instant is one at the owner's machine. One of the same millisecond may be an earlier one.
    ///
    /// Keeps FL-15.
    pub fn covers(&self, looked_at: Option<Timestamp>) -> bool {
        self.is_first || looked_at.is_some_and(|looked_at| looked_at > self.since)
    }

    /// Returns since when the owner can have seen something that is there since an instant.
    pub fn seen_since(&self, at: Timestamp) -> Timestamp {
        if self.is_first { at } else { at.max(self.since) }
    }

    /// Returns what of all that it told it told since the owner has it; nothing where nobody knows how much that is.
    ///
    /// Keeps FL-15.
    pub fn told(&self, all: ToldOfDevice) -> Option<ToldOfDevice> {
        if self.is_first {
            return Some(all);
        }
        let (events, passed) = self.told_before?;
        (all.taken_at > self.since).then(|| ToldOfDevice {
            events: all.events.saturating_sub(events).max(0),
            passed: all.passed.saturating_sub(passed).max(0),
            ..all
        })
    }
}

/// Returns the devices that the caller owns, the retired ones among them; at most [`MOST_OWNED`].
pub fn own(ctx: &mut OperationContext<'_>) -> Result<Vec<Owned>> {
    let me = ctx.actor().id.as_str();
    owned(ctx, me)
}

fn owned(ctx: &mut OperationContext<'_>, user: &str) -> Result<Vec<Owned>> {
    let org = ctx.org();
    ctx.query(&OWNED, params![org, user], |row| {
        let (since, enrolled_at) = (row.get::<Timestamp>(1)?, row.get::<Timestamp>(2)?);
        let (events, passed) = (row.get::<Option<i64>>(3)?, row.get::<Option<i64>>(4)?);
        Ok(Owned {
            id: DeviceId::from_store(row.get(0)?),
            since,
            is_first: since <= enrolled_at,
            told_before: events.zip(passed),
        })
    })
}

/// Takes a user who is deleted away from devices; at most [`MOST_OWNED`].
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.kind != SubjectKind::User || ended.how != Departure::Deleted {
        return Ok(());
    }
    let devices: Vec<DeviceId> = owned(ctx, &ended.id)?.into_iter().map(|owned| owned.id).collect();
    if devices.is_empty() {
        return Ok(());
    }
    let (org, now) = (ctx.org(), ctx.now());
    let params: &[Param<'_>] = params![org, ended.id.as_str(), now];
    ctx.execute(&DISOWN, params)?;
    ctx.change("/ownedDevices", json!(devices), Value::Null);
    for device_id in devices {
        ctx.emit(&fences::UPDATED, &fences::OfDevice { device_id });
    }
    Ok(())
}

//! Who acts, who may decide, and what somebody can do, in words that are compared.

use super::delegations;
use super::model::{Approval, Behind, Kind, Party, Vote};
use super::routes::{self, Frozen};
use provost_areas_access::{oauth, workload_trusts};
use provost_areas_fleet::fleet;
use provost_areas_identity::directory::model::UserId;
use provost_areas_identity::{directory, service_accounts};
use provost_areas_platform::audit;
use provost_kernel::auth::{Permission, Role};
use provost_kernel::db::Tx;
use provost_kernel::{Result, Timestamp};

/// The scope of who decides.
pub const DECIDE: &str = "mcp_approvals:decide";

/// What the store says of somebody now.
enum Standing {
    /// There is nobody, or they are suspended or disabled.
    Gone,
    /// They act, and have no role.
    WithoutRole,
    /// They act.
    Acting(Permission),
}

/// Returns what somebody can do now, in words that differ when it does; `None` for somebody who acts no more.
pub fn of_party(tx: &mut Tx<'_>, org: &str, party: &Party) -> Result<Option<String>> {
    Ok(match standing(tx, org, party)? {
        Standing::Gone => None,
        Standing::WithoutRole => Some("-".to_owned()),
        Standing::Acting(permission) => {
            let scopes = permission.scopes.to_list().join(" ");
            Some(format!("{} {scopes}", permission.role.as_str()))
        }
    })
}

/// Returns the users who stand behind who asked for an approval, behind whom it is for, and behind the device that the call names.
///
/// Keeps AP-3.
pub fn behind(tx: &mut Tx<'_>, org: &str, approval: &Approval, device: Option<&str>) -> Result<Behind> {
    let held = match device {
        Some(device) => fleet::holders(tx, org, device)?,
        None => Vec::new(),
    };
    let mut parties = vec![approval.asker.id.as_str(), approval.subject.id.as_str()];
    parties.extend(held.iter().chain(&approval.gains).map(String::as_str));
    service_accounts::people_behind(tx, org, &parties, doors)
}

/// The same of who would ask for themselves, with whoever would get something by it.
///
/// Keeps AP-3.
pub fn behind_gains(tx: &mut Tx<'_>, org: &str, asker: &Party, gains: &[String]) -> Result<Behind> {
    let mut parties = vec![asker.id.as_str()];
    parties.extend(gains.iter().map(String::as_str));
    service_accounts::people_behind(tx, org, &parties, doors)
}

/// The same of who would ask, and for whom.
///
/// Keeps AP-3.
pub fn behind_parties(
    tx: &mut Tx<'_>,
    org: &str,
    (asker, subject): (&Party, &Party),
    device: Option<&str>,
) -> Result<Behind> {
    let held = match device {
        Some(device) => fleet::holders(tx, org, device)?,
        None => Vec::new(),
    };
    let mut parties = vec![asker.id.as_str(), subject.id.as_str()];
    parties.extend(held.iter().map(String::as_str));
    service_accounts::people_behind(tx, org, &parties, doors)
}

/// How far entries of the log may lie before the instant of a request that was made before them: so far apart the clocks of servers may be
/// that nobody doubts, and a request is made at the latest instant that any of them kept. Units: seconds.
const CLOCKS_SECS: i64 = 60;

/// Says whether somebody is what they are by the hands of who stands behind an approval, since it was asked for. What was done before
/// counts as it did: most people of a small organization were made by one of them. Hands are followed to the accounts and owners behind
/// them, and not from person to person.
///
/// Keeps AP-3.
pub fn is_made_by_those(
    tx: &mut Tx<'_>,
    org: &str,
    approval: &Approval,
    party: &Party,
    behind: &Behind,
) -> Result<bool> {
    if !party.is_person() {
        return Ok(false);
    }
    let (user, since) = (UserId::from_store(party.id.clone()), approval.created_at);
    let mut hands = audit::hands_since(tx, org, &party.id, since.plus_secs(-CLOCKS_SECS))?;
    // What changes many at once has another target in the log.
    hands.append(&mut directory::hands_since(tx, org, &user, since)?);
    let is_theirs = |hand: &String| [&approval.asker.id, &approval.subject.id].contains(&hand);
    if hands.iter().any(is_theirs) {
        return Ok(true);
    }
    let hands: Vec<&str> = hands.iter().map(String::as_str).collect();
    Ok(!service_accounts::people_behind(tx, org, &hands, doors)?.is_disjoint(behind))
}

/// Returns why nothing passes any more by an approval at an instant, as far as those go who said yes, and in whose name.
///
/// Keeps AP-3 and AP-19.
pub fn lapse(
    tx: &mut Tx<'_>,
    org: &str,
    approval: &Approval,
    device: Option<&str>,
    now: Timestamp,
) -> Result<Option<&'static str>> {
    let behind = behind(tx, org, approval, device)?;
    if approval.is_of_own(&behind) {
        return Ok(Some("voter_behind"));
    }
    let about = (approval.kind, approval.route.as_ref());
    let has_quorum = approval.has_quorum(&behind, &mut |vote| may_decide_about(tx, org, about, vote, now))?;
    Ok((!has_quorum).then_some("voter_ended"))
}

/// Returns the doors to an account, and whose machines gateways take for it, whether a call names its machine or not.
///
/// Keeps AP-3.
fn doors(tx: &mut Tx<'_>, org: &str, account: &str) -> Result<Vec<String>> {
    let mut doors = workload_trusts::ids_of_account(tx, org, account)?;
    doors.append(&mut oauth::clients_of_account(tx, org, account)?);
    doors.append(&mut fleet::owners_of_account(tx, org, account)?);
    Ok(doors)
}

/// Returns the id of the person who owns who asks: of a person their own, of an account its owner's, and of an account that nobody owns
/// its own.
///
/// Keeps AP-8.
pub fn owner_of(tx: &mut Tx<'_>, org: &str, asker: &Party) -> Result<String> {
    let owner = if asker.is_person() {
        None
    } else {
        service_accounts::owner_of(tx, org, &asker.id)?
    };
    Ok(owner.unwrap_or_else(|| asker.id.clone()))
}

/// Says whether somebody may decide about approvals at this moment, whatever they come with.
pub fn may_decide(tx: &mut Tx<'_>, org: &str, party: &Party) -> Result<bool> {
    Ok(match standing(tx, org, party)? {
        Standing::Acting(permission) => permission.role == Role::Admin && permission.scopes.has(DECIDE),
        Standing::Gone | Standing::WithoutRole => false,
    })
}

/// Says whether a vote counts at an instant, about a request of a kind with a route: who says it may decide, and in whose place they say it
/// may decide and is let by the route.
///
/// Keeps AP-13 and AP-19.
pub fn may_decide_about(
    tx: &mut Tx<'_>,
    org: &str,
    (kind, route): (Kind, Option<&Frozen>),
    vote: &Vote,
    now: Timestamp,
) -> Result<bool> {
    if !may_decide(tx, org, &vote.by)? {
        return Ok(false);
    }
    let Some(lent) = &vote.in_name_of else {
        return routes::lets(tx, org, route, &vote.by);
    };
    let holder = vote.holder();
    Ok(delegations::still_holds(tx, org, (lent, &vote.by), kind, now)?
        && may_decide(tx, org, &holder)?
        && routes::lets(tx, org, route, &holder)?)
}

fn standing(tx: &mut Tx<'_>, org: &str, party: &Party) -> Result<Standing> {
    let found = match party.kind.as_str() {
        "user" => directory::principal(tx, org, &party.id)?
            .filter(|user| user.enabled)
            .map(|user| match user.role {
                None => Standing::WithoutRole,
                Some(role) => Standing::Acting(Permission::effective(role, None, None)),
            }),
        "service_account" => service_accounts::principal(tx, org, &party.id)?
            .filter(|account| account.enabled)
            .map(|account| Standing::Acting(Permission::effective(account.role, account.scopes, None))),
        _ => None,
    };
    Ok(found.unwrap_or(Standing::Gone))
}

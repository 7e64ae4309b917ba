//! Applies and drops held changes, all that are named or none.

use super::super::model::{Status, User, UserId};
use super::super::rights::{HeldLink, may_change};
use super::super::store::{groups, held, memberships, users};
use super::model::{HeldChange, HeldChangeId, Picture};
use crate::directory::groups::opened;
use crate::directory::users::update::follow;
use crate::directory::{fences, hands};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// LIMIT: held changes of one list.
const MOST: usize = 100;

pub struct SettleHeldChanges;

/// What becomes of which.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SettleBody {
    /// These are made now.
    #[serde(default)]
    apply: Changes,
    /// These are never made.
    #[serde(default)]
    drop: Changes,
}

/// Held changes, each once. LIMIT: 100.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>")]
#[schemars(inline, with = "Vec<HeldChangeId>", extend("maxItems" = 100))]
struct Changes(BTreeSet<HeldChangeId>);

impl TryFrom<Vec<String>> for Changes {
    type Error = &'static str;
    fn try_from(ids: Vec<String>) -> std::result::Result<Self, Self::Error> {
        if ids.len() > MOST {
            return Err("must hold at most 100 changes");
        }
        if !ids.iter().all(|id| (1..=256).contains(&id.chars().count())) {
            return Err("must hold ids of 1 to 256 characters");
        }
        Ok(Self(ids.iter().map(|id| HeldChangeId::from_text(id)).collect()))
    }
}

/// What was done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct SettlementResult {
    /// The changes that were made.
    applied: Vec<HeldChange>,
    /// The changes that never will be.
    dropped: Vec<HeldChange>,
    /// The identity links that are held from now on, because whoever made them could not give their users' roles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    held_identity_links: Vec<HeldLink>,
}

impl Operation for SettleHeldChanges {
    const META: Meta = Meta::write(
        "settleHeadlessDirectoryHeldChanges",
        Method::Post,
        "/directory/held-changes/settle",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("directory", "settle-held")
    .example(r#"{"apply": ["dhc_01m7w5fpg4ctwq7mvve86yenbr"]}"#)
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Apply or drop held changes",
        "All that are named, or none. Applying needs all that the users can do, as changing them one by one does (403 \
         escalation_forbidden). A change whose user is another than the line found, or is gone, or whose groups are gone, is \
         stale: 409 names those as stale, and they can only be dropped. An address or a login name by which another user of \
         the directory is meant is 409 as well, as it is when one user is changed.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = SettleBody;
    type Output = SettlementResult;

    /// Of a change its id says nothing: who the user is, who they will be, and which groups they join.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let (apply, drop) = (load(ctx, &input.body.apply.0)?, load(ctx, &input.body.drop.0)?);
        let pictures = |changes: &[HeldChange]| -> Vec<Value> { changes.iter().map(entry).collect() };
        Ok(json!({ "apply": pictures(&apply), "drop": pictures(&drop) }))
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let changes = load(ctx, &input.body.apply.0)?;
        Ok(changes
            .into_iter()
            .map(|change| change.user_id.as_str().to_owned())
            .collect())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<SettlementResult> {
        ctx.target(&fences::DIRECTORY, ctx.org());
        let (apply_now, drop_now) = (&input.body.apply.0, &input.body.drop.0);
        if !apply_now.is_disjoint(drop_now) {
            return Err(Error::new(
                Code::Conflict,
                "a change is either applied or dropped",
            ));
        }
        let applied = load(ctx, apply_now)?;
        let dropped = load(ctx, drop_now)?;
        let mut stale = Vec::new();
        let mut made = Vec::new();
        for change in &applied {
            match apply(ctx, change)? {
                Some(change) => made.push(change),
                None => stale.push(change.id.as_str().to_owned()),
            }
        }
        if !stale.is_empty() {
            let message = "what a change found is another now: drop it, and make the change by hand or by another import";
            return Err(Error::new(Code::Conflict, message).with("stale", stale));
        }
        // Behind all of them: two changes may give an address from one user to the other.
        for SettledChange { before, after, .. } in &made {
            let (login_name, email) = before.new_words(after);
            users::keep_words_free(ctx, (&before.directory_id, &before.id), login_name, email)?;
        }
        for change in applied.iter().chain(&dropped) {
            held::delete(ctx, &change.id)?;
        }
        // Whom it re-points may wait in this very commit (WK-4).
        ctx.invalidate_cached_credentials();
        let pictures = |changes: &[HeldChange]| -> Vec<Value> { changes.iter().map(entry).collect() };
        ctx.change("/applied", json!([]), pictures(&applied));
        ctx.change("/dropped", json!([]), pictures(&dropped));
        let held_identity_links = made.into_iter().flat_map(|made| made.held_identity_links);
        Ok(SettlementResult {
            applied,
            dropped,
            held_identity_links: held_identity_links.collect(),
        })
    }
}

fn entry(change: &HeldChange) -> Value {
    json!({
        "heldChangeId": change.id, "importId": change.import_id, "line": change.line, "userId": change.user_id,
        "before": change.before, "after": change.after, "joins": change.joins,
    })
}

fn load(ctx: &mut OperationContext<'_>, ids: &BTreeSet<HeldChangeId>) -> Result<Vec<HeldChange>> {
    ids.iter().map(|id| held::get(ctx, id)).collect()
}

/// A change that was made.
struct SettledChange {
    before: User,
    after: User,
    held_identity_links: Vec<HeldLink>,
}

/// Makes a change; nothing where it is no longer the one that its line found.
fn apply(ctx: &mut OperationContext<'_>, change: &HeldChange) -> Result<Option<SettledChange>> {
    let versions = match users::versions(ctx, &change.user_id) {
        Err(error) if error.code() == Code::NotFound => return Ok(None),
        other => other?,
    };
    // INVARIANT DI-10: a held change is made of the record that its line found, or not at all; a version that an open import
    // has staged is another.
    let [user] = versions.as_slice() else {
        return Ok(None);
    };
    if Picture::from(user) != change.before {
        return Ok(None);
    }
    for group in &change.joins {
        match groups::get(ctx, group) {
            Err(error) if error.code() == Code::NotFound => return Ok(None),
            other => drop(other?),
        }
    }
    let after = change.after.painted_on(user, ctx.now());
    may_change(ctx.actor().permission, user, &after)?;
    let held_identity_links = make(ctx, user, &after)?;
    hands::note_hand(ctx, after.id.as_str())?;
    for group in &change.joins {
        if memberships::add(ctx, group, &after)? {
            opened::note(ctx, group)?;
            ctx.emit(
                &fences::GROUP_MEMBER_ADDED,
                &fences::OfMembership::of(group, &after.id),
            );
        }
    }
    Ok(Some(SettledChange {
        before: user.clone(),
        after,
        held_identity_links,
    }))
}

fn make(ctx: &mut OperationContext<'_>, before: &User, after: &User) -> Result<Vec<HeldLink>> {
    if name_key(&before.login_name) != name_key(&after.login_name) {
        users::keep_name_free(ctx, &before.directory_id, &after.login_name, &before.id)?;
    }
    if before == after {
        return Ok(Vec::new());
    }
    users::save(ctx, after)?;
    let held = follow(ctx, before, after)?;
    let id: &UserId = &after.id;
    if before.status == Status::Suspended && after.status == Status::Active {
        ctx.emit(&fences::USER_REACTIVATED, &fences::OfUser::of(id));
    }
    ctx.emit(&fences::USER_UPDATED, &fences::OfUser::of(id));
    Ok(held)
}

//! What is signed of a release, so that a machine can check it without the server (D8.2, D12.8).
//!
//! Keeps MC-2, MC-7.

use super::content::Content;
use super::digest::ContentDigest;
use super::model::{Principal, Profile, Release, ReleaseId, ReleaseKind};
use super::store;
use super::targets::SCHEMA_VERSION;
use provost_kernel::dsse::{Envelope, SignedKind};
use provost_kernel::{OperationContext, Result, json};
use serde_json::{Value, json};

/// The permissions of the files on a machine: everybody reads them, only their owner writes.
const MODE: &str = "0644";

/// Returns the manifest of a release as the profile is now, signed.
pub fn sign(ctx: &OperationContext<'_>, profile: &Profile, release: &Release, content: &Content) -> Envelope {
    let files: Vec<Value> = profile
        .target
        .files(content)
        .iter()
        .map(|file| {
            json!({
                "name": file.name, "role": file.role, "sha256": file.sha256(), "sizeBytes": file.text.len(), "mode": MODE,
            })
        })
        .collect();
    let manifest = json!({
        "organizationId": ctx.org(),
        "profileId": profile.id,
        "releaseId": release.id,
        "version": release.version,
        "storeEpoch": release.store_epoch,
        "target": profile.target,
        "contentDigest": release.content_digest.clear(),
        "files": files,
        "createdAt": release.created_at,
        "signedAt": ctx.now(),
        "onUnavailable": profile.on_unavailable,
    });
    let payload = json::canonical(&manifest);
    ctx.services().keys.sign(SignedKind::Release, payload.as_bytes())
}

/// Makes the next release of a profile current, and returns it. The profile is stored with it.
///
/// The organization's chain head is locked, so the next version is nobody else's (MC-2).
pub fn release(
    ctx: &mut OperationContext<'_>,
    profile: &mut Profile,
    current: Option<&Release>,
    content: &Content,
    source: Option<&ReleaseId>,
    reason: &str,
) -> Result<Release> {
    let (store_epoch, canonical) = (store::epoch(ctx)?, content.canonical());
    let actor = ctx.actor();
    let release = Release {
        id: ctx.new_id(),
        version: current.map_or(0, |current| current.version) + 1,
        store_epoch,
        kind: if source.is_some() {
            ReleaseKind::Rollback
        } else {
            ReleaseKind::Publish
        },
        source_release_id: source.cloned(),
        content_digest: ContentDigest::of(&canonical),
        schema_version: SCHEMA_VERSION,
        reason: reason.to_owned(),
        created_at: current.map_or(ctx.now(), |current| ctx.now().max(current.created_at.plus_ms(1))),
        created_by: Principal {
            kind: actor.kind.to_owned(),
            id: actor.id.clone(),
        },
    };
    profile.current_release_id = Some(release.id.clone());
    profile.updated_at = profile.changed_at(ctx.now());
    let envelope = sign(ctx, profile, &release, content);
    store::insert_release(ctx, &profile.id, &release, &canonical, &envelope)?;
    store::save(ctx, profile, false)?;
    Ok(release)
}

//! Every statement of the area but those of the machines.
//!
//! Keeps MC-1.

use super::content::Content;
use super::digest::ContentDigest;
use super::model::{
    AutoPublish, OnUnavailable, Principal, Profile, ProfileId, ProfileStatus, Release, ReleaseId, ReleaseKind,
};
use super::targets::Target;
use provost_areas_platform::store::FACT;
use provost_kernel::db::Row;
use provost_kernel::dsse::Envelope;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, params, statements};

statements! {
    /// A profile and its current release.
    GET = "SELECT p.id, p.seq, p.name, p.target, p.auto_publish, p.on_unavailable, p.poll_interval_secs, \
        p.status, p.current_release_id, p.created_at, p.updated_at, r.id, r.version, r.store_epoch, r.kind, \
        r.source_release_id, r.content_digest, r.schema_version, r.reason, r.created_at, r.created_by_type, \
        r.created_by_id, p.client_version \
        FROM managed_config_profiles p \
        LEFT JOIN managed_config_releases r ON r.organization_id = p.organization_id \
        AND r.id = p.current_release_id \
        WHERE p.organization_id = ?1 AND p.id = ?2";
    /// One page of profiles, the oldest first.
    LIST = "SELECT id, seq, name, target, auto_publish, on_unavailable, poll_interval_secs, status, \
        current_release_id, created_at, updated_at, client_version \
        FROM managed_config_profiles \
        WHERE organization_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR status = CAST(?2 AS TEXT)) \
        AND (CAST(?3 AS TEXT) IS NULL OR target = CAST(?3 AS TEXT)) AND seq > ?4 ORDER BY seq, id LIMIT ?5";
    /// Makes a profile, unless its name is taken.
    INSERT = "\
        INSERT INTO managed_config_profiles (organization_id, id, seq, name, name_key, target, auto_publish, \
        on_unavailable, poll_interval_secs, status, current_release_id, created_at, updated_at, client_version) \
        SELECT ?1, ?2, COALESCE(MAX(seq), 0) + 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL, ?10, ?10, CAST(?11 AS TEXT) \
        FROM managed_config_profiles \
        WHERE organization_id = ?1 \
        ON CONFLICT DO NOTHING";
    /// Says whether another profile has a name.
    NAME_TAKEN = "SELECT id FROM managed_config_profiles WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3";
    /// Replaces what can change of a profile.
    SAVE = "UPDATE managed_config_profiles SET name = ?3, name_key = ?4, auto_publish = ?5, on_unavailable = ?6, poll_interval_secs = ?7, status = ?8, current_release_id = ?9, updated_at = ?10, client_version = ?11 WHERE organization_id = ?1 AND id = ?2";
    /// A content.
    CONTENT = "SELECT content FROM managed_config_contents WHERE organization_id = ?1 AND digest = ?2";
    /// Keeps a content, once.
    INSERT_CONTENT = "INSERT INTO managed_config_contents (organization_id, digest, content) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    /// Keeps a release.
    INSERT_RELEASE = "\
        INSERT INTO managed_config_releases (organization_id, id, profile_id, version, store_epoch, kind, \
        source_release_id, content_digest, schema_version, reason, created_at, created_by_type, \
        created_by_id, envelope) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    /// A release of a profile.
    RELEASE = "SELECT id, version, store_epoch, kind, source_release_id, content_digest, schema_version, reason, created_at, created_by_type, created_by_id FROM managed_config_releases WHERE organization_id = ?1 AND profile_id = ?2 AND id = ?3";
    /// One page of a profile's releases, the newest first.
    RELEASES = "SELECT id, version, store_epoch, kind, source_release_id, content_digest, schema_version, reason, created_at, created_by_type, created_by_id FROM managed_config_releases WHERE organization_id = ?1 AND profile_id = ?2 AND version < ?3 ORDER BY version DESC, id LIMIT ?4";
    /// The newest earlier release that says something else.
    EARLIER = "SELECT id, version, store_epoch, kind, source_release_id, content_digest, schema_version, reason, \
        created_at, created_by_type, created_by_id \
        FROM managed_config_releases \
        WHERE organization_id = ?1 AND profile_id = ?2 AND version < ?3 AND content_digest <> ?4 \
        ORDER BY version DESC, id LIMIT 1";
    /// The signed manifest of a release.
    ENVELOPE = "SELECT envelope FROM managed_config_releases WHERE organization_id = ?1 AND id = ?2";
    /// Replaces the signed manifest of a release.
    SET_ENVELOPE = "UPDATE managed_config_releases SET envelope = ?3 WHERE organization_id = ?1 AND id = ?2";
}

/// A profile and what is delivered of it.
pub struct ProfileWithRelease {
    /// The profile.
    pub profile: Profile,
    /// The current release, once something was published.
    pub current: Option<Release>,
}

impl ProfileWithRelease {
    /// Returns the current release.
    ///
    /// Errors: `NotFound` before the first publication.
    pub fn must_have_release(&self) -> Result<&Release> {
        self.current.as_ref().ok_or_else(no_release)
    }
}

fn no_release() -> Error {
    Error::not_found("managed configuration release")
}

/// Reads a profile whose version of the program stands in the column `at`.
fn profile(row: &Row<'_>, at: usize) -> Result<Profile> {
    let target = Target::parse(row.str(3)?);
    Ok(Profile {
        id: ProfileId::from_store(row.get(0)?),
        seq: row.get(1)?,
        name: row.get(2)?,
        target: target.ok_or_else(|| Error::internal("managed_config_profiles.target is no target"))?,
        auto_publish: AutoPublish::from_store(row.str(4)?)?,
        on_unavailable: OnUnavailable::from_store(row.str(5)?)?,
        poll_interval_secs: row.get(6)?,
        status: ProfileStatus::from_store(row.str(7)?)?,
        current_release_id: row.get::<Option<String>>(8)?.map(ReleaseId::from_store),
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
        client_version: row.get(at)?,
    })
}

/// Reads a release whose columns begin at `at`.
fn release(row: &Row<'_>, at: usize) -> Result<Release> {
    Ok(Release {
        id: ReleaseId::from_store(row.get(at)?),
        version: row.get(at + 1)?,
        store_epoch: row.get(at + 2)?,
        kind: ReleaseKind::from_store(row.str(at + 3)?)?,
        source_release_id: row.get::<Option<String>>(at + 4)?.map(ReleaseId::from_store),
        content_digest: ContentDigest::from_text(row.get::<String>(at + 5)?),
        schema_version: row.get(at + 6)?,
        reason: row.get(at + 7)?,
        created_at: row.get(at + 8)?,
        created_by: Principal {
            kind: row.get(at + 9)?,
            id: row.get(at + 10)?,
        },
    })
}

/// Returns a profile and its current release.
///
/// Errors: `NotFound` for an unknown and another organization's profile alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ProfileId) -> Result<ProfileWithRelease> {
    let org = ctx.org();
    let found = ctx.query_opt(&GET, params![org, id.as_str()], |row| {
        let current = row.get::<Option<String>>(11)?;
        Ok(ProfileWithRelease {
            profile: profile(row, 22)?,
            current: current.map(|_| release(row, 11)).transpose()?,
        })
    })?;
    found.ok_or_else(|| Error::not_found("managed configuration profile"))
}

/// Returns the profiles behind a place, the oldest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    status: Option<ProfileStatus>,
    target: Option<Target>,
    after: i64,
    limit: i64,
) -> Result<Vec<Profile>> {
    let org = ctx.org();
    let (status, target) = (status.map(ProfileStatus::as_str), target.map(Target::as_str));
    ctx.query(&LIST, params![org, status, target, after, limit], |row| {
        profile(row, 11)
    })
}

/// Stores a new profile.
///
/// Errors: `AlreadyExists` when the name is taken.
pub fn insert(ctx: &mut OperationContext<'_>, profile: &Profile) -> Result<()> {
    let org = ctx.org();
    let inserted = ctx.execute(
        &INSERT,
        params![
            org,
            profile.id.as_str(),
            profile.name.as_str(),
            name_key(&profile.name),
            profile.target.as_str(),
            profile.auto_publish.as_str(),
            profile.on_unavailable.as_str(),
            profile.poll_interval_secs,
            profile.status.as_str(),
            profile.created_at,
            profile.client_version.as_deref(),
        ],
    )?;
    if inserted == 1 { Ok(()) } else { Err(name_taken()) }
}

fn name_taken() -> Error {
    Error::new(Code::AlreadyExists, "a profile of this name exists already")
}

/// Stores what changed of a profile. The organization's chain head is locked, so nobody else changes it.
///
/// Errors: `AlreadyExists` when a new name is taken.
pub fn save(ctx: &mut OperationContext<'_>, profile: &Profile, renamed: bool) -> Result<()> {
    let (org, key) = (ctx.org(), name_key(&profile.name));
    if renamed {
        let sought = params![org, key.as_str(), profile.id.as_str()];
        if ctx.query_opt(&NAME_TAKEN, sought, |_| Ok(()))?.is_some() {
            return Err(name_taken());
        }
    }
    ctx.queue(
        &SAVE,
        params![
            org,
            profile.id.as_str(),
            profile.name.as_str(),
            key,
            profile.auto_publish.as_str(),
            profile.on_unavailable.as_str(),
            profile.poll_interval_secs,
            profile.status.as_str(),
            profile.current_release_id.as_ref().map(ReleaseId::as_str),
            profile.updated_at,
            profile.client_version.as_deref(),
        ],
    )
}

/// Returns the content of a release.
///
/// Errors: `Internal` when it is gone; nothing removes contents.
pub fn content(ctx: &mut OperationContext<'_>, digest: &ContentDigest) -> Result<Content> {
    let org = ctx.org();
    let text = ctx.query_opt(&CONTENT, params![org, digest.clear()], |row| row.get::<String>(0))?;
    Content::from_store(&text.ok_or_else(|| Error::internal("a release's content is not in the store"))?)
}

/// Stores a release, and its content unless that is there.
pub fn insert_release(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    release: &Release,
    canonical: &str,
    envelope: &Envelope,
) -> Result<()> {
    let (org, digest) = (ctx.org(), release.content_digest.clear());
    ctx.queue(&INSERT_CONTENT, params![org, digest, canonical])?;
    ctx.queue(
        &INSERT_RELEASE,
        params![
            org,
            release.id.as_str(),
            profile.as_str(),
            release.version,
            release.store_epoch,
            release.kind.as_str(),
            release.source_release_id.as_ref().map(ReleaseId::as_str),
            digest,
            release.schema_version,
            release.reason.as_str(),
            release.created_at,
            release.created_by.kind.as_str(),
            release.created_by.id.as_str(),
            written(envelope)?,
        ],
    )
}

fn written(envelope: &Envelope) -> Result<String> {
    serde_json::to_string(envelope).map_err(Error::internal)
}

/// Returns a release of a profile.
///
/// Errors: `NotFound` for an unknown, another profile's and another organization's release alike (D8.4).
pub fn release_of(ctx: &mut OperationContext<'_>, profile: &ProfileId, id: &ReleaseId) -> Result<Release> {
    let org = ctx.org();
    let sought = params![org, profile.as_str(), id.as_str()];
    let found = ctx.query_opt(&RELEASE, sought, |row| release(row, 0))?;
    found.ok_or_else(no_release)
}

/// Returns the releases of a profile before a version, the newest first.
pub fn releases(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    before: i64,
    limit: i64,
) -> Result<Vec<Release>> {
    let org = ctx.org();
    ctx.query(&RELEASES, params![org, profile.as_str(), before, limit], |row| {
        release(row, 0)
    })
}

/// Returns the newest release before `current` that says something else (D8.4).
///
/// Errors: `NoEarlierRelease`.
pub fn earlier_release(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    current: &Release,
) -> Result<Release> {
    let org = ctx.org();
    let sought = params![
        org,
        profile.as_str(),
        current.version,
        current.content_digest.clear()
    ];
    let found = ctx.query_opt(&EARLIER, sought, |row| release(row, 0))?;
    found.ok_or_else(|| Error::new(Code::NoEarlierRelease, "no earlier release says anything else"))
}

/// Returns the signed manifest of a release.
pub fn envelope(ctx: &mut OperationContext<'_>, release: &ReleaseId) -> Result<Envelope> {
    let org = ctx.org();
    let text = ctx.query_opt(&ENVELOPE, params![org, release.as_str()], |row| {
        row.get::<String>(0)
    })?;
    let text = text.ok_or_else(|| Error::internal("a release has no envelope"))?;
    serde_json::from_str(&text).map_err(Error::internal)
}

/// Replaces the signed manifest of a release.
pub fn set_envelope(ctx: &mut OperationContext<'_>, release: &ReleaseId, envelope: &Envelope) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&SET_ENVELOPE, params![org, release.as_str(), written(envelope)?])
}

/// Returns how often the store was restored (D12.9).
pub fn epoch(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let fact = ctx.query_opt(&FACT, params!["store_epoch"], |row| row.get::<String>(0))?;
    fact.map_or(Ok(0), |text| text.parse().map_err(Error::internal))
}

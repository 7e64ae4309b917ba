//! What a rollback would do: found, checked and bound to what it was found from (D8.4 to D8.11).
//!
//! ```text
//! preview      plan ─────────────▶ shown, with a token over (profile, current, source, principal)
//! somebody     publishes            the current release is another one
//! performance  plan ─▶ the token is over something else ─▶ 412, nothing written
//! ```
//!
//! Keeps MC-3.

use super::content::{Content, refusal};
use super::machines;
use super::model::{PreviewToken, ProfileId, Release, ReleaseId};
use super::store::{self, ProfileWithRelease};
use super::targets::Findings;
use super::views::{MachineCounts, Warning};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_kernel::audit::hex;
use provost_kernel::error::{Code, Error};
use provost_kernel::keys::MacPurpose;
use provost_kernel::{OperationContext, Result, Timestamp};

/// What a preview showed.
pub(super) const PREVIEW_TOKEN: MacPurpose = MacPurpose::Own("provost/mac/preview-token/v1");

/// How long a preview token is good. Units: seconds (D8.7).
const TOKEN_SECS: i64 = 15 * 60;

/// A rollback that can be performed.
pub struct Plan {
    /// The profile.
    pub profile: super::model::Profile,
    /// What is delivered now.
    pub current: Release,
    /// What it says.
    pub current_content: Content,
    /// The release whose content is restored.
    pub source: Release,
    /// What that one says.
    pub source_content: Content,
    /// What the program takes of it although it has no effect.
    pub warnings: Vec<Warning>,
    /// Where the machines stand.
    pub tally: MachineCounts,
    /// There is nothing to do: the source says what is current already (D8.9).
    pub is_no_op: bool,
}

impl Plan {
    /// Finds what a rollback would do, with every check that its performance makes.
    ///
    /// Errors: `NotFound` for an unknown profile or release, `Conflict` when the profile is archived,
    /// `NoEarlierRelease`, `SchemaIncompatible`.
    pub fn of(
        ctx: &mut OperationContext<'_>,
        profile: &ProfileId,
        source: Option<&ReleaseId>,
    ) -> Result<Self> {
        let ProfileWithRelease { profile, current } = store::get(ctx, profile)?;
        profile.must_be_active()?;
        let source = match (source, &current) {
            (Some(id), _) => store::release_of(ctx, &profile.id, id)?,
            (None, Some(current)) => store::earlier_release(ctx, &profile.id, current)?,
            (None, None) => return Err(Error::new(Code::NoEarlierRelease, "nothing was released yet")),
        };
        let current = current.ok_or_else(|| Error::internal("a profile with a release has none"))?;
        let source_content = store::content(ctx, &source.content_digest)?;
        let Findings { faults, warnings, .. } = profile.findings(&source_content);
        if !faults.is_empty() {
            let message = "the content of the release is not what the target's program takes today";
            return Err(refusal(Code::SchemaIncompatible, message, "", &faults));
        }
        let is_no_op =
            source.content_digest == current.content_digest && current.store_epoch == store::epoch(ctx)?;
        Ok(Self {
            current_content: store::content(ctx, &current.content_digest)?,
            tally: machines::tally(ctx, &profile, Some(&current))?,
            profile,
            current,
            source,
            source_content,
            warnings,
            is_no_op,
        })
    }

    /// Returns the name of this plan: another one as soon as another release is current (D1.9).
    pub fn etag(&self, ctx: &OperationContext<'_>) -> String {
        let mac = self.with_parts(ctx, &[b"etag"], |parts| {
            ctx.services().keys.mac(PREVIEW_TOKEN, parts)
        });
        format!("\"{}\"", hex(&mac[..16]))
    }

    /// Returns a token for what was shown, and when it ends.
    pub fn token(&self, ctx: &OperationContext<'_>) -> (String, Timestamp) {
        let expires_at = ctx.now().plus_secs(TOKEN_SECS);
        let expiry = expires_at.as_ms().to_be_bytes();
        let principal = ctx.actor().id.as_bytes();
        let mac = self.with_parts(ctx, &[b"token", principal, &expiry], |parts| {
            ctx.services().keys.mac(PREVIEW_TOKEN, parts)
        });
        (
            URL_SAFE_NO_PAD.encode([expiry.as_slice(), &mac].concat()),
            expires_at,
        )
    }

    /// Refuses to act on something else than what was seen (D8.7).
    ///
    /// Errors: `PreconditionFailed` with the `ETag` of now, also for a token that is malformed, expired, another
    /// principal's or another source's.
    pub fn must_match(
        &self,
        ctx: &OperationContext<'_>,
        token: Option<&PreviewToken>,
        if_match: Option<&str>,
    ) -> Result<()> {
        let etag = self.etag(ctx);
        if is_named(if_match, &etag) && token.is_none_or(|token| self.accepts(ctx, token)) {
            return Ok(());
        }
        Err(moved(etag))
    }

    fn accepts(&self, ctx: &OperationContext<'_>, token: &PreviewToken) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token.as_str()) else {
            return false;
        };
        let Some((expiry, mac)) = bytes.split_first_chunk::<8>() else {
            return false;
        };
        let principal = ctx.actor().id.as_bytes();
        let is_ours = self.with_parts(ctx, &[b"token", principal, expiry], |parts| {
            ctx.services().keys.mac_matches(PREVIEW_TOKEN, parts, mac)
        });
        is_ours && ctx.now() < Timestamp::from_ms(i64::from_be_bytes(*expiry))
    }

    fn with_parts<T>(&self, ctx: &OperationContext<'_>, first: &[&[u8]], f: impl FnOnce(&[&[u8]]) -> T) -> T {
        let words = [
            ctx.org(),
            self.profile.id.as_str(),
            self.current.id.as_str(),
            self.source.id.as_str(),
            self.current.content_digest.clear(),
            self.source.content_digest.clear(),
        ];
        let parts: Vec<&[u8]> = first
            .iter()
            .copied()
            .chain(words.iter().map(|word| word.as_bytes()))
            .collect();
        f(&parts)
    }
}

/// Says whether a precondition names what is now; none and `*` name everything.
pub fn is_named(if_match: Option<&str>, etag: &str) -> bool {
    if_match.is_none_or(|list| {
        list.split(',')
            .any(|tag| matches!(tag.trim(), t if t == "*" || t == etag))
    })
}

/// Returns the refusal of what is something else than was seen, with the `ETag` of now.
pub fn moved(etag: String) -> Error {
    let message = "this is not what was previewed, or the preview is too old; preview again";
    Error::new(Code::PreconditionFailed, message).with_header("etag", etag)
}

/// Says whether a caller binds the performance to something that was seen. `*` binds to nothing.
pub fn is_bound(token: Option<&PreviewToken>, if_match: Option<&str>) -> bool {
    token.is_some() || if_match.is_some_and(|list| list.split(',').all(|tag| tag.trim() != "*"))
}

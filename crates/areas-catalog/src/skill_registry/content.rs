//! Answers a version's archive, and its signed manifest.

use super::model::SkillItemId;
use super::reference::ItemPath;
use super::{find, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::dsse::Envelope;
use provost_kernel::operation::{Empty, Input, Meta, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetSkillRegistryContent;

impl Operation for GetSkillRegistryContent {
    const META: Meta = Meta::read(
        "getHeadlessSkillRegistryContent",
        "/skill-registry/{itemRef}/content",
        "registry",
    )
    .access("registry:read", &[Admin, Operator, Auditor])
    .command("skills", "download")
    .accepts_item_token()
    .answers(&["ETag"])
    .produces("application/gzip")
    .says(
        "Download the archive of a skill's version",
        "The latest version, unless the reference names one. ETag is the digest of the content. A gateway token \
         of the item is accepted too. What was withdrawn is answered with 409.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let (_, version) = find::installable(ctx, &input.path.item_ref)?;
        let content = store::content(ctx, &version.digest)?;
        ctx.header("etag", format!("\"{}\"", version.digest));
        ctx.send(content.into());
        Ok(NoContent {})
    }
}

pub struct GetSkillRegistryManifest;

/// A signed manifest.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct SignedManifest {
    item_id: SkillItemId,
    version: String,
    digest: String,
    /// The manifest under a signature of a key in `/.well-known/provost-keys.json`.
    envelope: Envelope,
}

impl Operation for GetSkillRegistryManifest {
    const META: Meta = Meta::read(
        "getHeadlessSkillRegistryManifest",
        "/skill-registry/{itemRef}/manifest",
        "registry",
    )
    .access("registry:read", &[Admin, Operator, Auditor])
    .command("skills", "manifest")
    .accepts_item_token()
    .answers(&["ETag"])
    .says(
        "Read the signed manifest of a skill's version",
        "A DSSE envelope; its payload names organization, item, version, digest and every file with its own \
         digest, so that a client can check what it has without the server. The latest version, unless the \
         reference names one.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = Empty;
    type Output = SignedManifest;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<SignedManifest> {
        let (item, version) = find::installable(ctx, &input.path.item_ref)?;
        let number = version.version.to_string();
        let envelope = store::envelope(ctx, &item.id, &number)?;
        ctx.header("etag", format!("\"{}\"", version.digest));
        Ok(SignedManifest {
            item_id: item.id,
            version: number,
            digest: version.digest,
            envelope,
        })
    }
}

//! Publishes a version of a skill.
//!
//! Keeps SK-1.

use super::inputs::{FolderName, Namespace, VersionText};
use super::model::{
    Item, ItemView, MAX_VERSIONS, Publication, Status, VersionSummary, VersionView, latest, publication,
    refuse_withdrawn,
};
use super::{store, version::Version, words};
use crate::skill_registry::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::dsse::{Envelope, SignedKind};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Content, Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use provost_skill_package::{Fault, MAX_ARCHIVE_BYTES, MEDIA_TYPES, Manifest, Names, Package};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// LIMIT: seconds for an archive to arrive (D1.10).
const UPLOAD_SECS: u64 = 120;

pub struct PublishSkillRegistryItem;

/// What is published where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct PublishQuery {
    /// The item's namespace; none when absent.
    namespace: Option<Namespace>,
    /// The version; one patch above the highest when absent, 1.0.0 for a new item.
    version: Option<VersionText>,
    /// What the folder was called that the content comes from, where the archive's is called otherwise. Events that say it
    /// mean the skill.
    folder: Option<FolderName>,
}

/// A package that was read and found right.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct PublishBody {
    #[serde(skip)]
    content: Option<Box<Publishable>>,
}

/// What a package is stored as.
#[derive(Debug)]
struct Publishable {
    manifest: Manifest,
    archive: Vec<u8>,
    names: Names,
    warnings: Vec<String>,
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct PublishResult {
    item: ItemView,
    version: VersionView,
    /// Whether the version is new; the same content as the latest version makes none.
    created: bool,
    /// What is not as the format says, and which of its names other skills have as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<String>,
}

impl Operation for PublishSkillRegistryItem {
    const META: Meta = Meta::write(
        "publishHeadlessSkillRegistryItem",
        Method::Post,
        "/skill-registry",
        "registry",
    )
    .access("registry:write", &[Admin])
    .command("skills", "publish-archive")
    .status(201)
    .answers(&["Location"])
    .also(200)
    .consumes(&MEDIA_TYPES, MAX_ARCHIVE_BYTES, UPLOAD_SECS)
    .says(
        "Publish a version of a skill",
        "The content is an archive of one folder with SKILL.md (agent-skills format). It is checked, rewritten \
         without what is not content, stored by its digest and signed. The same content as the latest version \
         changes nothing and is answered with 200. A refused archive is 422 with a list of what is wrong with it. The name is \
         SKILL.md's if it fits, else the folder's; both, and folder, mean the skill in events.",
    );
    type Path = Empty;
    type Query = PublishQuery;
    type Body = PublishBody;
    type Output = PublishResult;

    fn read_content(content: Content) -> Result<PublishBody> {
        let package = Package::from_archive(&content.media_type, &content.bytes).map_err(refusal)?;
        let content = Publishable {
            manifest: package.manifest().clone(),
            archive: package.to_archive(),
            names: package.names().clone(),
            warnings: package.warnings().to_vec(),
        };
        Ok(PublishBody {
            content: Some(Box::new(content)),
        })
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<PublishResult> {
        let content = input.body.content.as_ref();
        let content = content.ok_or_else(|| Error::internal("a publication without content was accepted"))?;
        let manifest = &content.manifest;
        let namespace = input.query.namespace.as_ref().map_or("", |n| n.get().as_str());
        let found = store::item_by_name(ctx, namespace, &manifest.name)?;
        let is_new = found.is_none();
        let item = found.unwrap_or_else(|| new_item(ctx, namespace, manifest));
        ctx.target(&fences::SKILL, item.id.as_str());
        refuse_withdrawn("this skill", item.withdrawn_at)?;
        let known = if is_new {
            Vec::new()
        } else {
            store::known(ctx, &item.id)?
        };
        let folder = input.query.folder.as_ref().map(|folder| folder.get().as_str());
        let words = words::beside_the_name(&item, &content.names, folder)?;
        let asked = input.query.version.as_ref().map(VersionText::get);
        match publication(&known, asked, &manifest.digest)? {
            Publication::Nothing(version) => {
                ctx.status(200);
                let mut warnings = content.warnings.clone();
                warnings.extend(words::learn(ctx, &item, &words, false)?);
                Ok(PublishResult {
                    warnings,
                    version: store::version_of(ctx, &item.id, &version.to_string())?,
                    item: item.into(),
                    created: false,
                })
            }
            Publication::New(version) => add(ctx, item, known, version, (content, &words)),
        }
    }
}

/// Returns what a refused archive is answered with.
fn refusal(faults: Vec<Fault>) -> Error {
    let message = match faults.first() {
        Some(fault) if fault.path.is_empty() => format!("the archive is not a skill: {}", fault.message),
        Some(fault) => format!("the archive is not a skill: {}: {}", fault.path, fault.message),
        None => "the archive is not a skill".to_owned(),
    };
    let message: String = message.chars().take(500).collect();
    faults
        .into_iter()
        .fold(Error::new(Code::InvalidDefinition, message), |error, fault| {
            error.and_field(pointer(&fault.path), fault.message)
        })
}

/// Returns the JSON Pointer of a file, folders being objects; empty for the whole archive.
fn pointer(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    format!("/{}", path.replace('~', "~0"))
}

fn new_item(ctx: &mut OperationContext<'_>, namespace: &str, manifest: &Manifest) -> Item {
    Item {
        id: ctx.new_id(),
        organization_id: ctx.org().to_owned(),
        namespace: namespace.to_owned(),
        name: manifest.name.clone(),
        description: String::new(),
        latest_version: None,
        version_count: 0,
        created_at: ctx.now(),
        updated_at: ctx.now(),
        withdrawn_at: None,
    }
}

fn add(
    ctx: &mut OperationContext<'_>,
    mut item: Item,
    mut known: Vec<VersionSummary>,
    version: Version,
    (content, words): (&Publishable, &BTreeMap<String, String>),
) -> Result<PublishResult> {
    let manifest = &content.manifest;
    if item.version_count >= MAX_VERSIONS {
        let message = format!("a skill has {MAX_VERSIONS} versions at most");
        return Err(Error::new(Code::Conflict, message));
    }
    let now = ctx.now();
    let added = VersionView {
        item_id: item.id.clone(),
        version: version.to_string(),
        digest: manifest.digest.clone(),
        size_bytes: i64::try_from(content.archive.len()).map_err(Error::internal)?,
        status: Status::Available,
        manifest: Some(manifest.clone()),
        published_at: now,
        published_by: ctx.actor().id.clone(),
        withdrawn_at: None,
    };
    let number = known.last().map_or(0, |k| k.number) + 1;
    known.push(VersionSummary {
        version,
        digest: manifest.digest.clone(),
        number,
        withdrawn_at: None,
    });
    let is_first = item.version_count == 0;
    let previous = item.latest_version.take();
    item.latest_version = latest(&known).map(|k| k.version.to_string());
    item.description.clone_from(&manifest.description);
    item.version_count += 1;
    if is_first {
        store::insert_item(ctx, &item)?;
        let place = format!(
            "/api/headless/v1/organizations/{}/skill-registry/{}",
            ctx.org(),
            item.id
        );
        ctx.header("location", place);
        ctx.change("/name", Value::Null, item.full_name());
    } else {
        item.updated_at = item.changed_at(now);
        store::save_item(ctx, &item)?;
    }
    let mut warnings = content.warnings.clone();
    warnings.extend(words::learn(ctx, &item, words, is_first)?);
    let envelope = sign(ctx, &item, &added, manifest);
    store::insert_version(ctx, &added, number, &envelope, &content.archive)?;
    ctx.change(
        "/versions",
        Value::Null,
        json!({ "version": added.version, "digest": added.digest }),
    );
    ctx.change("/latestVersion", previous, item.latest_version.clone());
    ctx.emit(
        &fences::PUBLISHED,
        &fences::NewVersion {
            item_id: item.id.clone(),
            version: added.version.clone(),
            digest: added.digest.clone(),
        },
    );
    Ok(PublishResult {
        item: item.into(),
        version: added,
        created: true,
        warnings,
    })
}

/// Signs what a client checks without the server: whose, which, and every file (SK-1).
fn sign(ctx: &OperationContext<'_>, item: &Item, version: &VersionView, manifest: &Manifest) -> Envelope {
    let mut payload = json!({
        "digest": version.digest,
        "files": manifest.files,
        "itemId": item.id,
        "name": item.name,
        "organizationId": item.organization_id,
        "publishedAt": version.published_at,
        "version": version.version,
    });
    if !item.namespace.is_empty() {
        payload["namespace"] = item.namespace.as_str().into();
    }
    let text = provost_kernel::json::canonical(&payload);
    ctx.services().keys.sign(SignedKind::Skill, text.as_bytes())
}

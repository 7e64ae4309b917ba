//! Opens an import.

use super::super::model::DirectoryId;
use super::super::store::imports;
use super::model::{Counts, Format, Import, Mode, OneImport, State};
use crate::directory::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub struct OpenImport;

/// What an import is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("not" = {
    "required": ["partial"], "properties": { "mode": { "const": "replace" }, "partial": { "const": true } }
}))]
pub struct OpenBody {
    /// The directory; `default` when absent.
    directory_id: Option<DirectoryId>,
    /// How the file is written.
    format: Format,
    /// What becomes of users and groups of the directory that the file does not name.
    mode: Mode,
    /// Whether it may be applied although lines were refused; in mode merge only, for a refused line may name whom
    /// mode replace would remove.
    #[serde(default)]
    partial: bool,
}

impl Operation for OpenImport {
    const META: Meta = Meta::write(
        "openHeadlessDirectoryImport",
        Method::Post,
        "/directory/imports",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("directory", "open-import")
    .example(r#"{"format": "jsonl", "mode": "merge"}"#)
    .status(201)
    .answers(&["Location"])
    .says(
        "Open an import of users and groups",
        "Send the file in chunks, then apply it: until then nothing of it is visible, and then all of it at once. Mode \
         merge leaves alone what the file does not name; mode replace removes it. An organization has one import at a \
         time: 409 names the one that is not finished as importId. An import into which no chunk arrives for an hour is \
         aborted.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = OpenBody;
    type Output = OneImport;

    fn validate(input: &Input<Self>) -> Result<()> {
        if input.body.partial && input.body.mode == Mode::Replace {
            return Err(Error::invalid("/partial", "cannot be true in mode replace"));
        }
        Ok(())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneImport> {
        let body = &input.body;
        imports::keep_alone(ctx)?;
        let import = Import {
            id: ctx.new_id(),
            organization_id: ctx.org().to_owned(),
            directory_id: body.directory_id.clone().unwrap_or_default().as_str().to_owned(),
            format: body.format,
            mode: body.mode,
            partial: body.partial,
            state: State::Open,
            abort_reason: None,
            generation: imports::allocate(ctx)?,
            next_sequence: 1,
            file_lines: 0,
            counts: Counts::default(),
            created_at: ctx.now(),
            updated_at: ctx.now(),
            finished_at: None,
        };
        ctx.target(&fences::IMPORT, import.id.as_str());
        ctx.change("/directoryId", Value::Null, import.directory_id.as_str());
        ctx.change("/mode", Value::Null, import.mode.as_str());
        imports::insert(ctx, &import)?;
        ctx.header(
            "location",
            format!(
                "/api/headless/v1/organizations/{}/directory/imports/{}",
                ctx.org(),
                import.id
            ),
        );
        Ok(OneImport {
            import: import.into(),
        })
    }
}

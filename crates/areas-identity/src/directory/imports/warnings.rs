//! Lists the warnings of an import.

use super::super::store::{clashes, imports};
use super::super::{PageQuery, READERS};
use super::model::{ImportPath, WarnedLine};
use crate::directory::fences;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListWarnings;

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    warnings: Vec<WarnedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListWarnings {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryImportWarnings",
        "/directory/imports/{importId}/warnings",
        "directory",
    )
    .access("directory:read", READERS)
    .command("directory", "list-import-warnings").columns(&["line", "path", "message", "userId as user"])
    .says(
        "List the warnings of an import",
        "Lines that were taken without their e-mail address, because another user of the directory has it, and lines whose \
         login name is another user's address. They are judged over the whole file: before the import is applied there are \
         none. The first 1000 are kept; counts.warnings counts all.",
    );
    type Path = ImportPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let (id, limit) = (&input.path.import_id, input.query.limit);
        ctx.target(&fences::IMPORT, id.as_str());
        let after = page::start(ctx, Self::META.id, input.query.cursor.as_ref(), 0)?;
        imports::get(ctx, id)?;
        let mut found = clashes::warned(ctx, id, after, limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, limit, &mut found, |(place, _)| *place);
        Ok(Page {
            warnings: found.into_iter().map(|(_, line)| line).collect(),
            next_cursor,
        })
    }
}

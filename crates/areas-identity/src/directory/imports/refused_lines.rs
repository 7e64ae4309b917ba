//! Lists the refused lines of an import.

use super::super::store::imports;
use super::super::{PageQuery, READERS};
use super::model::{ImportPath, RefusedLine};
use crate::directory::fences;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListRefusedLines;

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    refused_lines: Vec<RefusedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListRefusedLines {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryImportRefusedLines",
        "/directory/imports/{importId}/refused-lines",
        "directory",
    )
    .access("directory:read", READERS)
    .command("directory", "list-refused-lines")
    .columns(&["line", "path", "message"])
    .says(
        "List the refused lines of an import",
        "In the order of the file. The first 1000 are kept; counts.refused counts all.",
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
        let mut found = imports::refused(ctx, id, after, limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, limit, &mut found, |(place, _)| *place);
        Ok(Page {
            refused_lines: found.into_iter().map(|(_, line)| line).collect(),
            next_cursor,
        })
    }
}

//! Reads one import.

use super::super::{READERS, store::imports};
use super::model::{ImportPath, OneImport};
use crate::directory::fences;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetImport;

impl Operation for GetImport {
    const META: Meta = Meta::read(
        "getHeadlessDirectoryImport",
        "/directory/imports/{importId}",
        "directory",
    )
    .access("directory:read", READERS)
    .command("directory", "get-import")
    .says("Read an import", "Finished imports can be read for 30 days.");
    type Path = ImportPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneImport;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneImport> {
        ctx.target(&fences::IMPORT, input.path.import_id.as_str());
        let import = imports::get(ctx, &input.path.import_id)?;
        Ok(OneImport {
            import: import.into(),
        })
    }
}

//! Aborts an import: nothing of it ever was visible.

use super::super::store::imports;
use super::model::{AbortReason, ImportPath, OneImport, State};
use super::worker;
use crate::directory::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub struct AbortImport;

impl Operation for AbortImport {
    const META: Meta = Meta::write(
        "abortHeadlessDirectoryImport",
        Method::Post,
        "/directory/imports/{importId}/abort",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("directory", "abort-import")
    .says(
        "Abort an import",
        "Nothing of it becomes visible. The state may be aborting while much is cleared away; it becomes aborted by \
         itself, and then another import can be opened. An import that is aborted stays as it is; one that is applied \
         is 409.",
    );
    type Path = ImportPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneImport;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneImport> {
        let id = &input.path.import_id;
        ctx.target(&fences::IMPORT, id.as_str());
        let mut import = imports::get(ctx, id)?;
        if !matches!(import.state, State::Aborting | State::Aborted) {
            if import.state != State::Applying {
                import.must_be_open()?;
            }
            worker::abort(ctx, &mut import, AbortReason::Requested)?;
        }
        Ok(OneImport {
            import: import.into(),
        })
    }
}

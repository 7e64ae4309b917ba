//! Applies an import: everything becomes visible at once.

use super::super::store::imports;
use super::super::store::upkeep::Marked;
use super::model::{ImportPath, Mode, OneImport, State};
use super::worker;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result};

/// See [`Operation::META`].
pub struct ApplyImport;

impl Operation for ApplyImport {
    const META: Meta = Meta::write(
        "applyHeadlessDirectoryImport",
        Method::Post,
        "/directory/imports/{importId}/apply",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("directory", "apply-import")
    .confirmed()
    .says(
        "Apply an import",
        "Everything that the file says becomes visible at once; nothing undoes it. When lines were refused and the \
         import is not partial: 409 with refused, and nothing changes. In mode replace the answer may have the state \
         applying: what the file does not name is being marked, and the state becomes applied by itself. An import that \
         is applied stays as it is.",
    );
    type Path = ImportPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneImport;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<OneImport> {
        let id = &input.path.import_id;
        cx.target("import", id.as_str());
        let mut import = imports::get(cx, id)?;
        if !matches!(import.state, State::Applying | State::Applied) {
            import.must_be_open()?;
            import.must_be_clean()?;
            match import.mode {
                Mode::Merge => worker::swap(cx, &mut import)?,
                Mode::Replace => worker::mark_and_swap(cx, &mut import, Marked::default())?,
            }
        }
        Ok(OneImport {
            import: import.into(),
        })
    }
}

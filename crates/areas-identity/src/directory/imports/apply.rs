//! Applies an import: everything becomes visible at once.

use super::super::store::{imports, removals};
use super::model::{ImportPath, Mode, OneImport, State};
use super::worker::{self, Done};
use crate::directory::{deciders, fences};
use provost_areas_platform::settings;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::second_person;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// In a directory of more users counting alone is enough for one unit of work.
const MANY: i64 = 20_000;

pub struct ApplyImport;

/// What the caller knows of what goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ApplyBody {
    /// How many users, groups and memberships go in mode replace, added up; needed where it is much.
    confirm_removals: Option<IntegerBetween<0, 1_000_000_000>>,
}

impl Operation for ApplyImport {
    const META: Meta = Meta::write(
        "applyHeadlessDirectoryImport",
        Method::Post,
        "/directory/imports/{importId}/apply",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("directory", "apply-import")
    .example(r#"{"confirmRemovals": 12}"#)
    .confirmed()
    .of_two(&["rights", "removals"])
    .of_deciders()
    .says(
        "Apply an import",
        "Everything that the file says becomes visible at once; nothing undoes it. When lines were refused and the \
         import is not partial: 409 with refused, and nothing changes. The answer may have the state applying: what the file \
         does not name is being marked in mode replace, words of others are being judged, and the state becomes applied by \
         itself. A new e-mail address that another user of the directory has as its login name or address is left out of its \
         line, which counts as a warning: see the warnings. Where more would go \
         than directory.maxRemovalPercent of the directory's users, of its groups or of its memberships, and more than 5 of \
         that kind: 409 too_many_removals with the three counts, and confirmRemovals must be their sum. An import that is \
         applied stays as it is. Changes that a line could not make are held then: see the held changes.",
    );
    type Path = ImportPath;
    type Query = Empty;
    type Body = ApplyBody;
    type Output = OneImport;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        let import = imports::get(ctx, &input.path.import_id)?;
        deciders::are_changed_by(ctx, &import)
    }

    /// A chunk that comes behind the yes is none of what it was to.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let import = imports::get(ctx, &input.path.import_id)?;
        let users = deciders::made_others(ctx, &import)?;
        let (moved, going) = (deciders::moved(ctx, &import)?, deciders::going(ctx, &import)?);
        Ok(json!({
            "mode": import.mode, "nextSequence": import.next_sequence, "updatedAt": import.updated_at, "counts": import.counts,
            "usersWithRole": users, "membershipsOfUsersWithRole": moved, "usersWithRoleWhoGo": going,
        }))
    }

    /// Whom it makes somebody else, and whom it puts into a group. Who may not say yes anyway matters where rights are named: they may be able
    /// to by then.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let import = imports::get(ctx, &input.path.import_id)?;
        let of_everybody = second_person::is_named(ctx, "rights")?;
        deciders::gains(ctx, &import, of_everybody)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneImport> {
        let id = &input.path.import_id;
        ctx.target(&fences::IMPORT, id.as_str());
        let mut import = imports::get(ctx, id)?;
        if !matches!(import.state, State::Applying | State::Applied) {
            import.must_be_open()?;
            import.must_be_clean()?;
            match import.mode {
                Mode::Merge => worker::mark_and_swap(ctx, &mut import, Done::default())?,
                Mode::Replace => {
                    let removals = removals::count(ctx, &import, true)?;
                    let max_percent = settings::load(ctx)?.directory.max_removal_percent;
                    let confirmed = input.body.confirm_removals.as_ref().map(|sum| sum.get());
                    removals.must_be_few(max_percent, confirmed)?;
                    ctx.change("/removals", Value::Null, json!(removals));
                    if removals.users.of > MANY {
                        worker::mark_soon(ctx, &mut import)?;
                    } else {
                        worker::mark_and_swap(ctx, &mut import, Done::default())?;
                    }
                }
            }
        }
        Ok(OneImport {
            import: import.into(),
        })
    }
}

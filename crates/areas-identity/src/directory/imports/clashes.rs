//! Whom a file gives a word of somebody else, judged over the whole file.
//!
//! ```text
//! noted (by chunks) ─ judge ─► loses its address ─ the former one, or none ─┐
//!                         └──────────────────────────────────────────────────┴─► a login name that is another's address: told
//! ```
//!
//! An address that is new to its user and a word of another user of the directory behind the swap is taken from the line: the
//! user keeps the one that it had. Who had the address keeps it; where two lines bring it, neither has it, whichever comes
//! first. A login name that is the address of somebody who keeps it cannot be taken from its user, and to take the address away
//! would make a guard weaker: both are meant by the word then, and the line is warned of.
//!
//! Keeps DI-15: no file gives a user a new address that is a word of another user of the directory when it is
//! applied.

use super::super::model::User;
use super::super::store::clashes;
use super::model::{Import, WarnedLine};
use crate::directory::model::UserId;
use provost_kernel::{OperationContext, Result};
use serde::{Deserialize, Serialize};

/// How many versions one step looks at.
const PAGE: i64 = 500;
/// How many addresses one step takes away: each takes some statements.
const TAKEN: i64 = 50;

/// How far the judging of an import has come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClashProgress {
    stage: Stage,
    /// Versions up to this id are done.
    after: String,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
enum Stage {
    #[default]
    Judging,
    Taking,
    Telling,
}

/// Does the next part; says whether nothing is left to do.
pub fn step(ctx: &mut OperationContext<'_>, import: &mut Import, judged: &mut ClashProgress) -> Result<bool> {
    if matches!(judged.stage, Stage::Judging) {
        if let Some(page) = Page::next(ctx, judged)? {
            clashes::judge(ctx, import, page.bounds())?;
            if page.goes_on(judged) {
                return Ok(false);
            }
        }
        judged.stage = Stage::Taking;
        judged.after.clear();
    }
    if matches!(judged.stage, Stage::Taking) {
        if take(ctx, import)? {
            return Ok(false);
        }
        judged.stage = Stage::Telling;
    }
    if let Some(page) = Page::next(ctx, judged)? {
        tell(ctx, import, &page)?;
        return Ok(!page.goes_on(judged));
    }
    Ok(true)
}

/// Some noted versions: behind the one id, up to the other.
struct Page {
    after: String,
    last: String,
    is_full: bool,
}

impl Page {
    fn next(ctx: &mut OperationContext<'_>, judged: &ClashProgress) -> Result<Option<Self>> {
        let ids = clashes::noted(ctx, &judged.after, PAGE)?;
        let is_full = ids.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
        Ok(ids.into_iter().next_back().map(|last| Self {
            after: judged.after.clone(),
            last,
            is_full,
        }))
    }

    fn bounds(&self) -> (&str, &str) {
        (&self.after, &self.last)
    }

    /// Notes that the page is done; says whether there may be another one.
    fn goes_on(&self, judged: &mut ClashProgress) -> bool {
        judged.after.clone_from(&self.last);
        self.is_full
    }
}

/// Takes the next addresses away; says whether there may be more. One that is kept because of it may be another one's to lose.
fn take(ctx: &mut OperationContext<'_>, import: &mut Import) -> Result<bool> {
    let mut left = TAKEN;
    while left > 0 {
        let losing = clashes::losing(ctx, import, left)?;
        if losing.is_empty() {
            return Ok(false);
        }
        for (staged, line) in &losing {
            left -= 1;
            take_from(ctx, import, staged, *line)?;
        }
    }
    Ok(true)
}

fn take_from(
    ctx: &mut OperationContext<'_>,
    import: &mut Import,
    staged: &User,
    line: Option<i64>,
) -> Result<()> {
    let before = clashes::before(ctx, &staged.id, import.generation)?;
    let kept = User {
        email: before.as_ref().and_then(|before| before.email.clone()),
        ..staged.clone()
    };
    match before.filter(|before| says_the_same(before, &kept)) {
        // INVARIANT DI-3: an unchanged line stages nothing.
        Some(before) => {
            clashes::unstage(ctx, import.generation, &before)?;
            import.counts.users.updated -= 1;
            import.counts.users.unchanged += 1;
        }
        None => clashes::settle(ctx, import.generation, &kept)?,
    }
    let message = "another user of the directory has this address as its login name or e-mail address, or another line gives \
                   it to one; the line is taken without it";
    warn(ctx, import, &staged.id, line, "/email", message)
}

/// Says whether a version differs from another in nothing but when it is visible and when it was made.
fn says_the_same(before: &User, after: &User) -> bool {
    let shown = User {
        validity: before.validity,
        updated_at: before.updated_at,
        ..after.clone()
    };
    shown == *before
}

fn tell(ctx: &mut OperationContext<'_>, import: &mut Import, page: &Page) -> Result<()> {
    for (id, line) in clashes::namesakes(ctx, import, page.bounds())? {
        let message = "another user of the directory has this login name as its e-mail address; policies about either are \
                       judged for both where an event says it. Give one of them another word";
        warn(ctx, import, &UserId::from_store(id), line, "/loginName", message)?;
    }
    clashes::forget(ctx, page.bounds())
}

fn warn(
    ctx: &mut OperationContext<'_>,
    import: &mut Import,
    user: &UserId,
    line: Option<i64>,
    path: &str,
    message: &str,
) -> Result<()> {
    let warned = WarnedLine {
        line,
        user_id: user.clone(),
        path: path.to_owned(),
        message: message.to_owned(),
    };
    clashes::warn(ctx, import, &warned)
}

//! All SQL of the area, made of the parts that the owners of the tables offer.

use super::model::Candidate;
use crate::directory::store::groups::{groups_of_ids, groups_of_name, groups_of_names};
use crate::directory::store::users::{users_of_ids, users_of_name, users_of_names};
use crate::directory::store::{list_1, list_16, list_256, padded};
use crate::service_accounts::{accounts_of_ids, accounts_of_name, accounts_of_names};
use provost_areas_platform::announcements::SubjectKind;
use provost_kernel::db::Statement;
use provost_kernel::error::Error;
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params, statements};
use std::collections::HashMap;

/// The active subjects of these names.
macro_rules! of_names {
    ($list:expr) => {
        concat!(
            users_of_names!($list),
            " UNION ALL ",
            groups_of_names!($list),
            " UNION ALL ",
            accounts_of_names!($list)
        )
    };
}

statements! {
    /// The active subjects of one name.
    NAMED_1 = of_names!(list_1!());
    /// The active subjects of 16 names.
    NAMED_16 = of_names!(list_16!());
    /// The active subjects of 256 names.
    NAMED_256 = of_names!(list_256!());
    /// Somebody else who has a name, active or not.
    TAKEN = concat!(users_of_name!(), " AND u.id <> ?3 UNION ALL ", groups_of_name!(), " AND g.id <> ?3 UNION ALL ", accounts_of_name!(), " AND a.id <> ?3");
    /// Those of 16 ids that users have.
    USER_IDS_16 = users_of_ids!(list_16!());
    /// Those of 256 ids that users have.
    USER_IDS_256 = users_of_ids!(list_256!());
    /// Those of 16 ids that groups have.
    GROUP_IDS_16 = groups_of_ids!(list_16!());
    /// Those of 256 ids that groups have.
    GROUP_IDS_256 = groups_of_ids!(list_256!());
    /// Those of 16 ids that service accounts have.
    ACCOUNT_IDS_16 = accounts_of_ids!(list_16!());
    /// Those of 256 ids that service accounts have.
    ACCOUNT_IDS_256 = accounts_of_ids!(list_256!());
}

fn kind(word: &str) -> Result<SubjectKind> {
    SubjectKind::parse(word).ok_or_else(|| Error::internal("a subject is of no kind"))
}

/// Returns the active subjects of these folded names, by name. LIMIT: 256 names.
///
/// Cost: one statement, whatever the number of names.
pub fn named(ctx: &mut OperationContext<'_>, keys: &[&str]) -> Result<HashMap<String, Vec<Candidate>>> {
    let statement: (&'static Statement, usize) = match keys.len() {
        0 => return Ok(HashMap::new()),
        1 => (&NAMED_1, 1),
        2..=16 => (&NAMED_16, 16),
        _ => (&NAMED_256, 256),
    };
    let mut found: HashMap<String, Vec<Candidate>> = HashMap::with_capacity(keys.len());
    let values = padded(ctx.org(), keys, statement.1, &[]);
    ctx.query(statement.0, &values, |row| {
        let candidate = Candidate {
            kind: kind(row.str(0)?)?,
            id: row.get(1)?,
            directory_id: row.get(2)?,
        };
        found.entry(row.get(3)?).or_default().push(candidate);
        Ok(())
    })?;
    Ok(found)
}

/// Returns the kind of somebody else than `except` who has a name, active or not (D6.6).
pub fn name_taken(ctx: &mut OperationContext<'_>, name: &str, except: &str) -> Result<Option<SubjectKind>> {
    let (org, key) = (ctx.org(), name_key(name));
    ctx.query_opt(&TAKEN, params![org, key, except], |row| kind(row.str(0)?))
}

/// Returns those ids that name no subject of this kind; deleted ones are none, suspended and disabled ones are.
pub fn missing(ctx: &mut OperationContext<'_>, kind: SubjectKind, ids: &[&str]) -> Result<Vec<String>> {
    let (few, many): (&'static Statement, &'static Statement) = match kind {
        SubjectKind::User => (&USER_IDS_16, &USER_IDS_256),
        SubjectKind::Group => (&GROUP_IDS_16, &GROUP_IDS_256),
        SubjectKind::ServiceAccount => (&ACCOUNT_IDS_16, &ACCOUNT_IDS_256),
    };
    let mut there = std::collections::HashSet::new();
    // PostgreSQL takes no NUL in a text, and no id has one.
    let askable: Vec<&str> = ids.iter().copied().filter(|id| !id.contains('\0')).collect();
    for part in askable.chunks(256) {
        let (statement, size) = if part.len() <= 16 { (few, 16) } else { (many, 256) };
        let values = padded(ctx.org(), part, size, &[]);
        there.extend(ctx.query(statement, &values, |row| row.get::<String>(0))?);
    }
    let absent = ids.iter().filter(|id| !there.contains(**id));
    Ok(absent.map(|id| (*id).to_owned()).collect())
}

//! What a skill is called beside its name in the registry.
//!
//! Hooks of clients send the name that stands in `SKILL.md`, or that of the folder. An ACL that knew the registry's name alone
//! would be switched off by either, so each is a word of the item (SK-9).
//!
//! ```text
//! word ─ match key ─► one skill: the event is judged as it
//!                     several: as each of them, and where they differ nobody can say: a guard holds, nothing opens
//! ```
//!
//! What a new word can do, whoever publishes: it makes events mean this item that named nobody before, and makes events mean
//! both that meant another skill. Neither frees a skill from its guards, because the words that were there stay.
//!
//! Absent on purpose: taking a word away. Machines have copies of every version.

use super::model::{Item, SkillItemId};
use provost_areas_identity::words::{Kind, WordQuery, key_of, living};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result, params, statements};
use provost_skill_package::Names;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// LIMIT: words of one skill beside its name; each decision about it reads them all.
const MAX_WORDS: usize = 32;

statements! {
    /// The words of an item.
    WORDS = "SELECT match_key, word FROM skill_words WHERE organization_id = ?1 AND item_id = ?2 ORDER BY match_key";
    /// Adds a word.
    INSERT_WORD = "INSERT INTO skill_words (organization_id, item_id, match_key, word) VALUES (?1, ?2, ?3, ?4)";
}

/// Returns the words of an item beside its names in the registry, by match key.
pub fn of(ctx: &mut OperationContext<'_>, item: &SkillItemId) -> Result<BTreeMap<String, String>> {
    let org = ctx.org();
    let found = ctx.query(&WORDS, params![org, item.as_str()], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(found.into_iter().collect())
}

/// Returns the names of a package, and that of the folder where it was, as far as they are words beside the item's name.
///
/// A word that nobody sees is none, and means nothing in events either.
///
/// Errors: `InvalidDefinition` for a name that looks like an id, which is another skill's or nobody's.
pub fn beside_the_name(item: &Item, names: &Names, folder: Option<&str>) -> Result<BTreeMap<String, String>> {
    let own = key_of(Kind::Skill, &item.name);
    let mut words = BTreeMap::new();
    for word in [names.front_matter.as_deref(), names.folder.as_deref(), folder] {
        let Some(word) = word else { continue };
        let key = key_of(Kind::Skill, word);
        if key.starts_with("ski_") {
            let message = "a skill cannot be called like an id: ski_ and what follows; rename it";
            return Err(Error::new(Code::InvalidDefinition, message));
        }
        if !key.is_empty() && key != own {
            words.insert(key, word.to_owned());
        }
    }
    Ok(words)
}

/// Adds words to an item that is stored. Returns a warning for each that another skill has as well, and for each that is new
/// to an item which is not: two skills whose folders are called alike would become one.
///
/// Errors: `Conflict` when the item would have too many.
pub fn learn(
    ctx: &mut OperationContext<'_>,
    item: &Item,
    words: &BTreeMap<String, String>,
    is_new: bool,
) -> Result<Vec<String>> {
    let known = of(ctx, &item.id)?;
    let mut asked = WordQuery::default();
    asked.add(Kind::Skill, &item.name);
    let mut added = 0;
    let mut warnings = Vec::new();
    for (key, word) in words {
        asked.add(Kind::Skill, word);
        if known.contains_key(key) {
            continue;
        }
        added += 1;
        if known.len() + added > MAX_WORDS {
            let message = format!(
                "a skill has {MAX_WORDS} names beside its own at most; publish it from a folder that is called {:?}",
                item.name
            );
            return Err(Error::new(Code::Conflict, message));
        }
        // INVARIANT SK-9: rows come and never go.
        let (org, id) = (ctx.org(), item.id.as_str());
        ctx.queue(&INSERT_WORD, params![org, id, key.as_str(), word.as_str()])?;
        ctx.change("/names", Value::Null, json!(word));
        if !is_new {
            let name = item.full_name();
            warnings.push(format!(
                "{name} was not called so before: {word:?}; if that is another skill, publish it under a name of its own"
            ));
        }
    }
    let org = ctx.org().to_owned();
    let found = living(&mut ctx.tx(), &org, &asked)?;
    for word in std::iter::once(&item.name).chain(words.values()) {
        let others = found.of(Kind::Skill, word).iter();
        let others: Vec<&str> = others
            .map(|named| named.id.as_str())
            .filter(|id| *id != item.id.as_str())
            .collect();
        if !others.is_empty() {
            warnings.push(format!(
                "{word:?} also means {}: events that say it are judged as each of them",
                others.join(", ")
            ));
        }
    }
    Ok(warnings)
}

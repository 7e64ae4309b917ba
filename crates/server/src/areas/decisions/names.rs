//! Skills are decided about by their ids: policies name ids (their names are resolved when they are written), and a
//! hook may only know a skill's name.
//!
//! A name that no skill has stays as it is. One that several skills have is missing: no policy about any of them may be
//! slipped past by a name that could be each of them (DE-5).

use crate::areas::history::Incoming;
use crate::areas::skill_registry;
use provost_kernel::{Cx, Result};
use provost_policy::Field;
use std::collections::HashMap;

/// Puts the ids of skills in place of their names.
///
/// Cost: one statement for each distinct name; none where skills are named by their ids.
pub fn resolve_skills(cx: &mut Cx<'_>, events: &mut [Incoming]) -> Result<()> {
    let skill = Field::SKILL.name();
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    for event in events {
        let named = event.attributes.get(skill).and_then(|value| value.as_str());
        // PostgreSQL takes no NUL in a text, and no name has one.
        let Some(name) = named.filter(|name| !is_id(name) && !name.contains('\0')) else {
            continue;
        };
        if !known.contains_key(name) {
            let found = skill_registry::find_exact(cx, name)?;
            known.insert(name.to_owned(), found.into_iter().map(|(id, _)| id).collect());
        }
        let ids = known.get(name).map(Vec::as_slice).unwrap_or_default();
        match ids {
            [] => {}
            [id] => drop(event.attributes.insert(skill.to_owned(), id.as_str().into())),
            _ => {
                event.attributes.remove(skill);
                event.missing.push(skill.to_owned());
            }
        }
    }
    Ok(())
}

fn is_id(text: &str) -> bool {
    provost_kernel::id::parse("ski", text).is_some()
}

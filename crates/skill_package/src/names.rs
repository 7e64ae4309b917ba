//! What a skill is called: by `SKILL.md`, by its folder, and in the registry.
//!
//! Clients take any text for a name, and each takes it from elsewhere: hooks send the name of the front matter or that of the
//! folder. The registry's name is made for paths and references. So a package knows all of them.

use super::manifest::is_valid_name;
use super::path::shown;

/// LIMIT: letters of the names of skills (agent-skills).
const MAX_NAME: usize = 64;

/// The names that a skill came with, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The name in the front matter of `SKILL.md`.
    pub front_matter: Option<String>,
    /// The name of the folder that held it.
    pub folder: Option<String>,
}

impl Names {
    /// Returns the name in the registry: that of the front matter if it fits, else the folder's, else the given one.
    ///
    /// Errors: a sentence with the command to type, where none fits.
    pub(super) fn choose(&self, given: Option<&str>) -> Result<String, String> {
        let own = self.own().find(|name| is_valid_name(name));
        match (own, given) {
            (Some(own), Some(given)) if own != given => Err(format!(
                "the skill has a name that fits, {own:?}; leave --name {} out",
                shown(given)
            )),
            (Some(own), _) => Ok(own.to_owned()),
            (None, Some(given)) if is_valid_name(given) => Ok(given.to_owned()),
            (None, Some(given)) => Err(format!("--name {:?} does not fit: {GRAMMAR}", shown(given))),
            (None, None) => {
                let mut names: Vec<String> = self.own().map(|name| format!("{:?}", shown(name))).collect();
                names.dedup();
                let names = match names.as_slice() {
                    [] => "the skill has no name".to_owned(),
                    [one] => format!("{one} does not fit as a name"),
                    several => format!("neither {} fits as a name", several.join(" nor ")),
                };
                Err(format!(
                    "{names}: {GRAMMAR}; say one: provost skills publish FOLDER --name {}",
                    self.suggestion()
                ))
            }
        }
    }

    /// Says whether a name that the registry takes stands in the front matter, so that no other can be given.
    pub(super) fn is_settled(&self) -> bool {
        self.front_matter.as_deref().is_some_and(is_valid_name)
    }

    /// Returns what somebody should know of the names when this one was chosen.
    pub(super) fn warning(&self, chosen: &str) -> Option<String> {
        let others = self.own().filter(|name| *name != chosen);
        let mut others: Vec<String> = others.map(|name| format!("{:?}", shown(name))).collect();
        others.dedup();
        (!others.is_empty()).then(|| {
            format!(
                "the registry calls the skill {chosen:?}; {} means it as well, in events and policies",
                others.join(" and ")
            )
        })
    }

    fn own(&self) -> impl Iterator<Item = &str> {
        [&self.front_matter, &self.folder]
            .into_iter()
            .filter_map(Option::as_deref)
    }

    /// Returns a name that fits and looks like the first of them.
    fn suggestion(&self) -> String {
        let fitted = self.own().map(|name| {
            let words: Vec<String> = name
                .split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(str::to_ascii_lowercase)
                .collect();
            let mut fitted = words.join("-");
            fitted.truncate(MAX_NAME);
            fitted.trim_end_matches('-').to_owned()
        });
        fitted
            .into_iter()
            .find(|name| is_valid_name(name))
            .unwrap_or_else(|| "my-skill".to_owned())
    }
}

const GRAMMAR: &str = "a name is 1 to 64 of a-z, 0-9 and -, with no hyphen first, last or twice in a row";

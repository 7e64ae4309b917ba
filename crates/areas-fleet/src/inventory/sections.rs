//! A report, made ready for whoever writes it.

use provost_inventory::wire::{Report, Section, Sighting, Unchanged, digest};
use provost_kernel::Timestamp;
use provost_kernel::error::{Error, Result};
use std::collections::BTreeMap;

/// Which scan it is.
pub struct Scan {
    /// The digest of the name that the device gave it: whatever stands in a name, this is none.
    pub id: String,
    /// How the device counted it.
    pub counter: Option<i64>,
    /// The device's clock when it began.
    pub started_at: Timestamp,
    /// The device's clock when it ended.
    pub finished_at: Timestamp,
    /// The name of this taking of it, which no device chooses: two of one scan are two.
    pub taking: String,
}

/// One observation.
pub struct Found {
    /// As it is kept.
    pub sighting: Sighting,
    /// The same as it is stored.
    pub facts: String,
    /// Its digest, of all but the name of its project.
    pub digest: String,
    /// What its project's folder is called, as the device says it.
    pub project_name: Option<String>,
}

impl Found {
    /// Returns what is kept of the name of its project.
    ///
    /// Keeps PV-2.
    pub fn kept_name(&self, shows_projects: bool) -> Option<&str> {
        self.project_name.as_deref().filter(|_| shows_projects)
    }
}

/// A section whose observations are told apart.
pub struct Ready {
    pub client: &'static str,
    pub account: String,
    pub digest: String,
    pub is_complete: bool,
    pub faults: String,
    /// By what makes each of them the same one in the next scan.
    pub found: BTreeMap<String, Found>,
}

impl Ready {
    /// Makes a report ready.
    ///
    /// Errors: those of a writer of JSON, which has none for these types.
    pub fn of(report: Report, taking: String) -> Result<(Scan, Vec<Self>, Vec<Unchanged>)> {
        let scan = Scan {
            id: report.name_digest(),
            counter: report.counter,
            started_at: report.started_at,
            finished_at: report.finished_at,
            taking,
        };
        let sections = report.sections.into_iter().map(Self::section);
        Ok((scan, sections.collect::<Result<_>>()?, report.unchanged))
    }

    /// Says whether the section names projects.
    pub fn names_projects(&self) -> bool {
        self.found.values().any(|found| found.project_name.is_some())
    }

    /// Returns by what the device's sections are told apart.
    pub fn place(&self) -> (String, String) {
        (self.client.to_owned(), self.account.clone())
    }

    fn section(section: Section) -> Result<Self> {
        Ok(Self {
            client: section.client.word(),
            account: section.user,
            digest: section.digest,
            is_complete: section.complete,
            faults: text(&section.faults)?,
            found: identified(section.observations)?,
        })
    }
}

fn text(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}

/// Returns observations by what makes each of them the same one in the next scan. Two entries of one name in one file are two things: they
/// are numbered, by one counter for each name, since a report may hold thousands of one.
fn identified(observations: Vec<Sighting>) -> Result<BTreeMap<String, Found>> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for mut sighting in observations {
        let project_name = sighting.take_project_name();
        let ident = sighting.ident();
        let number = numbers.entry(ident.clone()).or_default();
        *number += 1;
        let one = match *number {
            1 => ident,
            number => format!("{ident}#{number}"),
        };
        let facts = text(&sighting)?;
        let digest = digest(std::slice::from_ref(&sighting), &[]);
        let of_one = Found {
            sighting,
            facts,
            digest,
            project_name,
        };
        found.insert(one, of_one);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_inventory::wire::Place;

    #[test]
    fn thousands_of_one_name_are_told_apart_with_one_look_at_each() {
        let one = Sighting::Environment {
            place: Place {
                class: "other".into(),
                path: "0".repeat(32),
                project: None,
                project_name: None,
            },
            names: vec![],
        };
        // Each look at all before it would be five thousand million of them.
        let found = identified(vec![one.clone(); 100_000]).unwrap();
        assert_eq!(found.len(), 100_000);
        let ident = one.ident();
        assert!(found.contains_key(&ident) && found.contains_key(&format!("{ident}#100000")));
    }
}

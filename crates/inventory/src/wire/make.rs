//! A report, made of scans.

use super::{
    MAX_FAULTS, MAX_OBSERVATIONS, MAX_SECTIONS, Place, Report, Section, SectionFault, Sighting, Unchanged,
};
use crate::client::Client;
use crate::disk::Fault;
use crate::report::{self, Observation, Scan, ServerFacts};
use provost_words::digest::{document_sha256, sha256_hex};
use provost_words::time::Timestamp;
use std::collections::BTreeMap;

impl Report {
    /// Makes the report of scans, one of each home. A section whose digest the server acknowledged for this client and account is
    /// named and not sent again.
    ///
    /// What is longer or more than a report may hold is left out, and its section is not complete by that. An agent that counts its scans
    /// sets `counter` then.
    pub fn of(
        scan_id: String,
        (started_at, finished_at): (Timestamp, Timestamp),
        scans: &[Scan],
        acknowledged: &BTreeMap<(Client, String), String>,
    ) -> Self {
        let mut found: BTreeMap<(Client, String), (Vec<Sighting>, Vec<SectionFault>)> = BTreeMap::new();
        let mut count = 0;
        for section in scans.iter().flat_map(|scan| &scan.sections) {
            // Two homes may have one name: to the server they are one account.
            let (observations, faults) = found.entry((section.client, section.user.clone())).or_default();
            faults.extend(section.faults.iter().map(SectionFault::of));
            for sighting in &section.observations {
                let sent = Sighting::of(sighting);
                if count < MAX_OBSERVATIONS && sent.refusal().is_none() {
                    count += 1;
                    observations.push(sent);
                } else {
                    faults.push(SectionFault {
                        place: Place::of(&sighting.place).without_project_name(),
                        fault: Fault::Truncated,
                    });
                }
            }
        }
        let (mut sections, mut unchanged) = (Vec::new(), Vec::new());
        for ((client, user), (observations, mut faults)) in found.into_iter().take(MAX_SECTIONS) {
            faults.truncate(MAX_FAULTS);
            let digest = digest(&observations, &faults);
            if acknowledged.get(&(client, user.clone())) == Some(&digest) {
                unchanged.push(Unchanged { client, user, digest });
                continue;
            }
            sections.push(Section {
                client,
                user,
                digest,
                complete: faults.is_empty(),
                faults,
                observations,
            });
        }
        Self {
            scan_id,
            counter: None,
            started_at,
            finished_at,
            sections,
            unchanged,
        }
    }
}

impl Report {
    /// Leaves out what projects are called, and says whether anything said it. The digests are those of what is left.
    ///
    /// Keeps PV-2.
    pub fn leave_out_project_names(&mut self) -> bool {
        let mut were_there = false;
        for section in &mut self.sections {
            let mut is_other = false;
            for sighting in &mut section.observations {
                is_other |= sighting.take_project_name().is_some();
            }
            if is_other {
                section.digest = digest(&section.observations, &section.faults);
            }
            were_there |= is_other;
        }
        were_there
    }
}

/// Returns the digest of a section: over the canonical JSON of its observations and faults.
pub fn digest(observations: &[Sighting], faults: &[SectionFault]) -> String {
    let said = serde_json::to_value((observations, faults)).map(|said| document_sha256(&said));
    format!("sha256:{}", said.unwrap_or_else(|_| sha256_hex(b"")))
}

impl Place {
    fn of(place: &report::Place) -> Self {
        Self {
            class: place.class.to_owned(),
            path: place.path.clone(),
            project: place.project.clone(),
            project_name: place.project_name.clone(),
        }
    }

    /// Returns the place as a fault has it: what a project is called is said of what was found, and of nothing else.
    #[must_use]
    pub fn without_project_name(self) -> Self {
        Self {
            project_name: None,
            ..self
        }
    }
}

impl SectionFault {
    fn of(fault: &report::SectionFault) -> Self {
        Self {
            place: Place::of(&fault.place).without_project_name(),
            fault: fault.fault,
        }
    }
}

fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Sighting {
    fn of(sighting: &report::Sighting) -> Self {
        let place = Place::of(&sighting.place);
        match sighting.observation.clone() {
            Observation::McpServer(facts) => Self::server(place, facts),
            Observation::Skill { name, digest } => Self::Skill { place, name, digest },
            Observation::Extension { name, enabled } => Self::Extension { place, name, enabled },
            Observation::Hook { event, commands } => Self::Hook {
                place,
                event,
                commands: counted(commands),
            },
            Observation::Setting { name, value } => Self::Setting {
                place,
                name: name.to_owned(),
                value,
            },
            Observation::Environment { names } => Self::Environment { place, names },
            Observation::Credential {
                pattern,
                member_name,
                fingerprint,
                file_mode,
                world_readable,
            } => Self::Credential {
                place,
                pattern,
                member_name,
                fingerprint,
                file_mode,
                world_readable,
            },
            Observation::Sessions { files } => Self::Sessions {
                place,
                files: counted(files),
            },
        }
    }

    fn server(place: Place, facts: ServerFacts) -> Self {
        Self::McpServer {
            place,
            key: facts.key,
            configured_name: facts.configured_name,
            scope: facts.scope,
            transport: facts.transport,
            version: facts.version,
            version_pin: facts.version_pin,
            shape: facts.shape,
            weak: facts.weak,
            arg_shapes: facts.arg_shapes,
            env_names: facts.env_names,
            header_names: facts.header_names,
            secrets_inline: counted(facts.secrets_inline),
            enabled: facts.enabled,
        }
    }
}

//! What could not be read, and of whom that says that more may be there.

use super::{MAX_FAULTS, Spot, Walk};
use crate::client::Client;
use crate::disk::Fault;
use crate::hide;
use crate::readers::reads_projects;
use crate::report::{Scan, Section, SectionFault};

impl Walk<'_> {
    /// Notes a fault; where a file names projects (`is_source`), or is one, files of every client may be missing by it.
    pub(super) fn fault_of(&mut self, spot: &Spot, fault: Fault, is_source: bool) {
        if is_source && spot.project.is_none() && self.unsure.len() < MAX_FAULTS {
            let fault = self.section_fault(spot, fault);
            self.unsure.insert(fault);
        }
        self.fault(spot, fault);
    }

    fn section_fault(&self, spot: &Spot, fault: Fault) -> SectionFault {
        SectionFault {
            place: self.place(spot),
            fault,
            file: spot.path.clone(),
        }
    }

    pub(super) fn fault(&mut self, spot: &Spot, fault: Fault) {
        let fault = self.section_fault(spot, fault);
        let faults = self.faults.entry(spot.client).or_default();
        // The client's section is not complete with the first of them; who reads more than so many learns nothing.
        if faults.len() < MAX_FAULTS && self.noted.insert((spot.client, fault.clone())) {
            faults.push(fault);
        }
    }

    /// Keeps IV-4.
    pub(super) fn finish(mut self) -> Scan {
        let user = self.home.file_name().unwrap_or_default().to_string_lossy();
        let user = hide::name(self.key, &user);
        let is_unsure = !self.unsure.is_empty();
        let section = |client: Client| {
            let (found, faults) = (self.found.remove(&client), self.faults.remove(&client));
            if found.is_none() && faults.is_none() {
                return None;
            }
            let mut faults = faults.unwrap_or_default();
            if reads_projects(client) {
                let others = self.unsure.iter().filter(|fault| !faults.contains(fault));
                let others: Vec<SectionFault> = others.cloned().collect();
                faults.extend(others);
                faults.truncate(MAX_FAULTS);
            }
            Some(Section::new(
                client,
                user.clone(),
                faults,
                found.unwrap_or_default(),
            ))
        };
        Scan {
            sections: Client::ALL.into_iter().filter_map(section).collect(),
            is_unsure,
            project_names: self.project_names,
        }
    }
}

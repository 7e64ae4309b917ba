//! What is seen of folders: skills, and how many conversations are kept.

use super::{Noted, Spot, Walk, spot_like};
use crate::readers::{At, Folder, SESSIONS, SKILLS};
use crate::report::Observation;
use crate::{hide, skills};

impl Walk<'_> {
    pub(super) fn skills(&mut self, in_projects: bool) {
        let of = |folder: &&Folder| matches!(folder.at, At::Project(_)) == in_projects;
        for folder in SKILLS.iter().filter(of) {
            for spot in self.spots(folder.client, folder.at, folder.class, false) {
                let names = match self.disk.names(&spot.path, &spot.fence) {
                    Ok(names) => names,
                    Err(fault) => {
                        self.fault(&spot, fault);
                        continue;
                    }
                };
                for name in names {
                    let spot = Spot {
                        path: spot.path.join(&name),
                        ..spot_like(&spot)
                    };
                    self.of_file = Noted::default();
                    let shown = hide::name(self.key, &name);
                    match skills::digest(self.disk, &spot.path, &spot.fence) {
                        Ok(None) => {}
                        Ok(digest) => self.note(&spot, Observation::Skill { name: shown, digest }),
                        Err(fault) => {
                            self.fault(&spot, fault);
                            self.note(
                                &spot,
                                Observation::Skill {
                                    name: shown,
                                    digest: None,
                                },
                            );
                        }
                    }
                }
            }
        }
    }

    pub(super) fn sessions(&mut self) {
        for kept in SESSIONS {
            let spots = self.spots(kept.client, kept.at, kept.class, false);
            if let Some(first) = spots.first() {
                let spot = Spot {
                    path: self.home.to_owned(),
                    ..spot_like(first)
                };
                self.of_file = Noted::default();
                self.note(&spot, Observation::Sessions { files: spots.len() });
            }
        }
    }
}

//! `provost history adopt`: segments of another folder come into the configured place, which becomes the store's.

use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::show;
use crate::commands::store::segments;
use crate::commands::store_flags::{Absent, StoreFlags, StoreLocation, block_on, brief};
use provost_areas_policy::history::{self, File, PlaceStanding};
use std::path::PathBuf;

/// Bring segments of recorded history from another folder into the configured place, and make that place the store's.
///
/// Every segment that the store names is read whole, with its size and digest, before it counts. What neither place holds is
/// listed; rows that are still in the database stay there. A place that carries the marker of another store is refused: with
/// --take-over that store seals and removes nothing there any more. Stop the server first.
#[derive(clap::Parser)]
#[command(
    name = "adopt",
    after_help = "Examples:
  provost history adopt /mnt/old/history
  provost history adopt --take-over"
)]
pub struct Adopt {
    /// The folder in which the segments are now; none when they lie in the configured place already
    folder: Option<PathBuf>,
    /// Take the configured place from another store that has marked it
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl Adopt {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let found = StoreLocation::find(&config, Absent::Refuse)?;
        let _lock = match &found.data_dir {
            Some(folder) => Some(lock::take(folder)?),
            None => None,
        };
        let (files, holder) = segments::named_with_holder(&found.location, &found.keys)?;
        let runtime = segments::runtime()?;
        let place = config.history.open(&config.store.data_dir(), runtime.handle())?;
        match history::standing(&place, &holder, &files) {
            PlaceStanding::Foreign { store, is_former } if !self.take_over => {
                return Err(Failure::new(format!(
                    "the configured place of the history carries the marker of {}; give this store a place of its own, or, if that \
                     store is served no more, say --take-over",
                    history::whose_place(store.as_deref(), is_former)
                )));
            }
            PlaceStanding::Unreadable(error) => {
                return Err(Failure::new(format!(
                    "the configured place of the history cannot be read: {error}"
                )));
            }
            _ => {}
        }
        let (brought, missing) = self.bring(&place, &files)?;
        if !missing.is_empty() && missing.len() == files.len() {
            let folder = self
                .folder
                .as_ref()
                .map(|folder| format!("{} and ", folder.display()));
            return Err(Failure::new(format!(
                "{}the configured place hold none of the {} segments that the store names; nothing was changed",
                folder.unwrap_or_default(),
                files.len()
            )));
        }
        let kernel = found.start(brief())?;
        let taken = block_on(async {
            let taken = history::take_place(&kernel, &place).await;
            kernel.stop().await;
            taken
        })??;
        taken.map_err(|error| Failure::new(format!("the place of the history cannot be marked: {error}")))?;
        for name in &missing {
            show::note(&format!("warning: the segment {name} is in neither place"));
        }
        show::out(&format!(
            "{brought} of {} segments were brought in, and the place is this store's.\n",
            files.len()
        ))
    }

    /// Copies what is not whole in the place; returns how many that were, and the names of what is nowhere.
    fn bring(&self, place: &history::SegmentPlace, files: &[File]) -> Result<(usize, Vec<String>), Failure> {
        let from = match &self.folder {
            Some(folder) if folder.is_dir() => Some(segments::opened(folder)?),
            Some(folder) => return Err(Failure::new(format!("{} is no folder", folder.display()))),
            None => None,
        };
        let (mut brought, mut missing) = (0, Vec::new());
        for file in files {
            if history::verify(place, file).is_none() {
                continue;
            }
            let whole = from.as_ref().filter(|from| history::verify(from, file).is_none());
            let Some(from) = whole else {
                missing.push(file.name.clone());
                continue;
            };
            // Of a damaged one in the place nothing is kept: the whole one takes its name.
            let removed = place.0.remove(&file.name);
            removed.map_err(|error| {
                Failure::new(format!("the segment {} cannot be replaced: {error}", file.name))
            })?;
            segments::copy(from, place, file)?;
            if let Some(fault) = history::verify(place, file) {
                return Err(Failure::new(format!("{fault}, although it was just brought in")));
            }
            brought += 1;
        }
        Ok((brought, missing))
    }
}

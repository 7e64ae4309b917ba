//! The installation that every point begins with, and copies of it on a RAM disk where there is one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Outcome};
use crate::process;
use crate::product::{Bootstrap, Installation, Store, Workplace};

/// Made once: an organization with its first admin, on a store that a server has used and left.
pub struct Base {
    pub binary: PathBuf,
    pub folder: PathBuf,
    pub bootstrap: Bootstrap,
}

/// A folder for this run. Syncs cost nothing on a RAM disk, and no injected fault needs a disk.
pub fn workplace(purpose: &str) -> Outcome<Workplace> {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return Workplace::create(purpose);
    }
    let folder = memory.join(format!("provost-{purpose}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context(format_args!("cannot create {}", folder.display()))?;
    Ok(Workplace { folder })
}

impl Base {
    pub fn make(binary: &Path, workplace: &Workplace) -> Outcome<Self> {
        let folder = workplace.folder.join("base");
        std::fs::create_dir_all(&folder).context("cannot create the base folder")?;
        let installation = installation(binary, &folder);
        let bootstrap = installation.initialize()?;
        installation.serve()?.stop()?;
        Ok(Self {
            binary: binary.to_path_buf(),
            folder,
            bootstrap,
        })
    }

    /// A copy below `folder`, which is emptied first.
    pub fn copy(&self, folder: &Path) -> Outcome<Installation> {
        drop(std::fs::remove_dir_all(folder));
        std::fs::create_dir_all(folder).context(format_args!("cannot create {}", folder.display()))?;
        copy_folder(&self.folder.join("data"), &folder.join("data"))?;
        Ok(installation(&self.binary, folder))
    }
}

/// An installation in a folder, there or not.
pub fn installation(binary: &Path, folder: &Path) -> Installation {
    let data = folder.join("data");
    Installation::new(binary, Store::Sqlite { data }, folder)
}

/// Copies a folder with everything in it, modes included.
pub fn copy_folder(from: &Path, to: &Path) -> Outcome {
    process::run(Command::new("cp").arg("-a").arg(from).arg(to))
}

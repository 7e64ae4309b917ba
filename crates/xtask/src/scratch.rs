//! A scratch worktree of the last commit, below the target folder, changed by nobody else.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::process;

pub struct Scratch {
    folder: PathBuf,
    /// The commit that it stands at.
    pub commit: String,
    /// Held for as long as the worktree is ours: a second run would change the tree below the first.
    _lock: File,
}

impl Scratch {
    /// Makes the worktree, or brings the one of the last run to the last commit.
    ///
    /// # Errors
    /// When another process has it, or git fails.
    pub fn prepare(workplace: &Path) -> Outcome<Self> {
        let lock = lock(workplace)?;
        let root = process::root();
        let commit = git(&root, &["rev-parse", "HEAD"])?.trim().to_owned();
        let folder = workplace.join("tree");
        if !folder.join(".git").exists() {
            // A folder that was deleted by hand is still known to git.
            git(&root, &["worktree", "prune"])?;
            let place = folder.to_string_lossy().into_owned();
            git(&root, &["worktree", "add", "--detach", &place, &commit])?;
        }
        let scratch = Self {
            folder,
            commit,
            _lock: lock,
        };
        scratch.revert()?;
        git(
            &scratch.folder,
            &["checkout", "--quiet", "--detach", &scratch.commit],
        )?;
        Ok(scratch)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes away whatever was changed in it.
    pub fn revert(&self) -> Outcome {
        git(&self.folder, &["checkout", "--quiet", "--force", "--", "."])?;
        // Files that a change or a test left behind.
        git(&self.folder, &["clean", "-dfq"]).map(drop)
    }
}

fn lock(workplace: &Path) -> Outcome<File> {
    std::fs::create_dir_all(workplace).context(format_args!("cannot make {}", workplace.display()))?;
    let place = workplace.join("lock");
    let file = File::create(&place).context(format_args!("cannot make {}", place.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(Failure::new(format!(
            "another run has {}: wait for its end",
            workplace.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(error).context(format_args!("cannot lock {}", place.display()))
        }
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Outcome<String> {
    process::output(Command::new("git").current_dir(folder).args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_while_the_first_lasts() {
        let workplace = process::target().join(format!("scratch-lock-{}", std::process::id()));
        let first = lock(&workplace).unwrap();
        assert!(lock(&workplace).is_err());
        drop(first);
        assert!(lock(&workplace).is_ok());
        std::fs::remove_dir_all(&workplace).unwrap();
    }
}

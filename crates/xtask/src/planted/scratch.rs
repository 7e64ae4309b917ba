//! The worktree that bugs are planted in: the last commit, below the target folder, changed by nobody else.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Outcome;
use crate::process;

pub struct Scratch {
    folder: PathBuf,
    /// The commit that it stands at.
    pub commit: String,
}

impl Scratch {
    /// Makes the worktree, or brings the one of the last drill to the last commit.
    pub fn prepare(workplace: &Path) -> Outcome<Self> {
        let root = process::root();
        let commit = git(&root, &["rev-parse", "HEAD"])?.trim().to_owned();
        let folder = workplace.join("tree");
        if !folder.join(".git").exists() {
            // A folder that was deleted by hand is still known to git.
            git(&root, &["worktree", "prune"])?;
            let place = folder.to_string_lossy().into_owned();
            git(&root, &["worktree", "add", "--detach", &place, &commit])?;
        }
        let scratch = Self { folder, commit };
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

    pub fn apply(&self, patch: &Path) -> Outcome {
        git(&self.folder, &["apply", &patch.to_string_lossy()]).map(drop)
    }

    /// Takes away whatever was planted.
    pub fn revert(&self) -> Outcome {
        git(&self.folder, &["checkout", "--quiet", "--force", "--", "."])?;
        // Files that a patch or a test left behind.
        git(&self.folder, &["clean", "-dfq"]).map(drop)
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Outcome<String> {
    process::output(Command::new("git").current_dir(folder).args(arguments))
}

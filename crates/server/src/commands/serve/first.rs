//! The first start: an organization, its admin account, and what its owner does next.

use crate::app::{self, NewOrganization};
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use provost_areas_platform::audit;
use provost_kernel::Kernel;
use provost_kernel::durable::{folder_of, sync_folder};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Makes the first organization of an empty store and shows its token once.
///
/// The token's file is made before anything is committed: a token that nobody can read would lock the
/// organization out until `provost recover`.
pub async fn make(kernel: &Arc<Kernel>, name: Option<&str>, file: Option<&Path>, url: &str) -> Outcome {
    if app::count_organizations(kernel).await? > 0 {
        return Ok(());
    }
    let file = file.map(TokenFile::create).transpose()?;
    let key = if name.is_none() { Some("default") } else { None };
    let made = match app::bootstrap_first(kernel, name.unwrap_or("Default organization"), key).await {
        Ok(made) => made,
        Err(error) => {
            if let Some(file) = file {
                file.discard();
            }
            // Another server on the same database was first; its operator has the token.
            let was_second = app::count_organizations(kernel)
                .await
                .is_ok_and(|count| count > 0);
            return if was_second { Ok(()) } else { Err(error.into()) };
        }
    };
    match file {
        Some(file) => {
            let path = file.keep(&made)?;
            tell(&made, url, &TokenDisplay::File(path))
        }
        None => tell(&made, url, &TokenDisplay::Here),
    }?;
    // The token first: it is shown once, and the line can be written by the next start.
    Ok(audit::served(kernel).await?)
}

/// Where the owner finds the token.
enum TokenDisplay {
    Here,
    File(PathBuf),
}

fn tell(made: &NewOrganization, url: &str, shown: &TokenDisplay) -> Outcome {
    let organization = &made.organization_id;
    let (line, token) = match shown {
        TokenDisplay::Here => (made.token.expose().clone(), made.token.expose().clone()),
        TokenDisplay::File(path) => {
            let quoted = path.to_string_lossy().replace('\'', r"'\''");
            (format!("in {}", path.display()), format!("$(cat '{quoted}')"))
        }
    };
    let text = format!(
        "organization  {organization}\n\
         token         {line}\n\
         \n\
         The token is shown this once. It may do everything in the organization. Try it:\n\
         \n  curl -sS -H \"Authorization: Bearer {token}\" {url}/api/headless/v1/organizations/{organization}/service-accounts\n\
         \n  PROVOST_URL={url} PROVOST_ORGANIZATION={organization} PROVOST_TOKEN=\"{token}\" provost service-accounts list\n\n"
    );
    show::token(&text, organization)
}

/// A file that waits for the token.
struct TokenFile {
    path: PathBuf,
    file: File,
}

impl TokenFile {
    fn create(path: &Path) -> Result<Self, Failure> {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file =
            made.map_err(|error| Failure::of_file("the bootstrap token file cannot be made", path, &error))?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { path, file })
    }

    fn discard(self) {
        drop(self.file);
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!("the empty file {} is left behind: {error}", self.path.display());
        }
    }

    fn keep(mut self, made: &NewOrganization) -> Result<PathBuf, Failure> {
        let line = provost_kernel::Secret::new(format!("{}\n", made.token.expose()));
        let written = self
            .file
            .write_all(line.expose().as_bytes())
            .and_then(|()| self.file.sync_all())
            .and_then(|()| sync_folder(folder_of(&self.path)));
        written
            .map_err(|error| Failure::of_file("the first token cannot be written to", &self.path, &error))?;
        Ok(self.path)
    }
}

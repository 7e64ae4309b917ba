//! The first start: an organization, its admin account, and what its owner does next.

use super::token_file::{self, TokenFile};
use crate::app::{self, NewOrganization};
use crate::commands::failure::{Failure, Outcome};
use crate::commands::logging::ANNOUNCE;
use crate::commands::show;
use crate::commands::store_flags::make_private;
use crate::config::Config;
use provost_areas_identity::service_accounts;
use provost_areas_platform::{audit, store};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Location;
use provost_kernel::{Kernel, Timestamp};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of the first token where nobody names one, in the data folder.
const FILE: &str = "first-token";

/// How long before its end the log names the first admin's token. Units: seconds (D2.4: the first of three warnings).
const SOON_SECS: i64 = 14 * 86_400;

/// For whole days that are nearest.
const HALF_A_DAY_MS: i64 = 43_200_000;

/// Where the first token goes.
pub struct TokenPlace {
    file: PathBuf,
    /// A folder that has to be made first.
    folder: Option<PathBuf>,
    /// Somebody reads standard output now, and wants the token there.
    is_shown: bool,
}

impl TokenPlace {
    /// Returns where a flag says; else the terminal, and where there is none a file in the data folder: what standard output is
    /// then, a journal or the log of a container, keeps what it is given, and shows it to others.
    pub fn find(flag: Option<&Path>, config: &Config) -> Self {
        let folder = config.store.data_dir();
        Self {
            file: flag.map_or_else(|| folder.join(FILE), Path::to_path_buf),
            is_shown: flag.is_none() && is_on_terminal(),
            folder: flag.is_none().then_some(folder),
        }
    }
}

/// Says whether somebody reads standard output now.
pub fn is_on_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// What the first start made, and where the token is.
pub struct First {
    made: NewOrganization,
    /// The file that holds the token, if one does.
    file: Option<PathBuf>,
    /// Where the store is.
    store: String,
    url: String,
    expires_at: Option<Timestamp>,
    now: Timestamp,
}

/// Makes the first organization of an empty store; `None` where there is one.
///
/// The token's file is made before anything is committed: a token that nobody can read would lock the organization out until
/// `provost recover`. A start that ended between the two leaves an empty file, which the next one fills or names:
///
/// ```text
/// file ─► commit ─► token       ended before the commit: the next start takes the empty file
///      1         2              ended behind it:         the next start warns of the empty file, and names `provost recover`
/// ```
pub async fn make(
    kernel: &Arc<Kernel>,
    name: Option<&str>,
    place: &TokenPlace,
    config: &Config,
    url: &str,
) -> Result<Option<First>, Failure> {
    if app::count_organizations(kernel).await? > 0 {
        warn_of_unwritten(kernel, &place.file).await?;
        return Ok(None);
    }
    let file = if place.is_shown {
        None
    } else {
        if let Some(folder) = &place.folder {
            make_private(folder)
                .map_err(|failure| failure.and("or name another place with --bootstrap-token-file"))?;
        }
        match TokenFile::create(&place.file).await? {
            // Another server made the organization meanwhile, and wrote its token there.
            None if app::count_organizations(kernel).await? > 0 => return Ok(None),
            None => return Err(token_file::occupied(&place.file)),
            made => made,
        }
    };
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
            return if was_second { Ok(None) } else { Err(error.into()) };
        }
    };
    let organization = &made.organization_id;
    let file = file.map(|file| file.keep(&made.token)).transpose();
    let file = file.map_err(|failure| {
        failure.and(&format!(
            "`provost recover --organization {organization}` issues another"
        ))
    })?;
    let store = store_of(config)?;
    let expires_at = end_of(kernel, organization).await?;
    tracing::info!(target: ANNOUNCE, "a new installation was made in {store}");
    if let Some(file) = &file {
        tracing::info!(target: ANNOUNCE, "the token of the first admin is in {}", file.display());
    }
    Ok(Some(First {
        now: kernel.clock.now(),
        url: url.to_owned(),
        store,
        expires_at,
        file,
        made,
    }))
}

/// Returns when the token of an organization's first admin ends.
async fn end_of(kernel: &Kernel, organization: &OrganizationId) -> Result<Option<Timestamp>, Failure> {
    let now = kernel.clock.now();
    let all = kernel
        .read_system(move |tx| service_accounts::ending_first_admins(tx, now, Timestamp::from_ms(i64::MAX)))
        .await?;
    let mut own = all.into_iter().filter(|(of, _)| of == organization);
    Ok(own.next().map(|(_, end)| end))
}

/// Says what the store is to its owner; a URL is not shown, it may hold a password.
fn store_of(config: &Config) -> Result<String, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(match config.store.location()? {
        Location::Sqlite(_) => absolute(&config.store.data_dir()).display().to_string(),
        Location::Postgres(_) => format!(
            "the PostgreSQL database, with its keys in {}",
            absolute(&config.store.keys_dir().0).display()
        ),
    })
}

/// Warns of a file that waits for a token which the start that made the organization did not live to write.
async fn warn_of_unwritten(kernel: &Arc<Kernel>, file: &Path) -> Outcome {
    if !token_file::is_unwritten(file) {
        return Ok(());
    }
    let organizations = kernel.read_system(store::organizations).await?;
    let organization = match organizations.as_slice() {
        [only] => only.as_str(),
        _ => "KEY",
    };
    tracing::warn!(
        "the file {} for the token of the first admin is empty: the start that made the organization ended before it wrote it; \
         `provost recover --organization {organization}` issues another. Then remove the file",
        file.display()
    );
    Ok(())
}

impl First {
    /// Tells the owner what to do next, once, and writes that the store is served.
    ///
    /// Errors: a token that stands in no file could not be printed.
    pub async fn tell(self, kernel: &Arc<Kernel>) -> Outcome {
        let text = self.text();
        match &self.file {
            None => show::token(&text, &self.made.organization_id)?,
            // The file has the token, and the log names the file: nobody has to read this.
            Some(_) => drop(show::out(&text)),
        }
        // The token first: it is shown once, and the line can be written by the next start.
        Ok(audit::served(kernel).await?)
    }

    fn text(&self) -> String {
        let Self { store, url, .. } = self;
        let organization = &self.made.organization_id;
        let expires = self.expires_at.map(|end| {
            let days = (end.as_ms() - self.now.as_ms() + HALF_A_DAY_MS) / (2 * HALF_A_DAY_MS);
            format!("{}, in {days} days", end.to_rfc3339())
        });
        let expires = expires.unwrap_or_default();
        let profile = format!("provost profile set {organization} --url {url} --organization {organization}");
        let (line, token, profile, once) = match &self.file {
            None => {
                let token = self.made.token.expose();
                let profile = format!("{profile}   # asks for the token");
                (
                    token.clone(),
                    token.clone(),
                    profile,
                    "The token is shown this once. ",
                )
            }
            Some(path) => {
                let quoted = format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
                let line = format!("in {}", path.display());
                (
                    line,
                    format!("$(cat {quoted})"),
                    format!("{profile} < {quoted}"),
                    "",
                )
            }
        };
        format!(
            "A new installation was made in {store}.\n\
             \n\
             url           {url}\n\
             organization  {organization}\n\
             token         {line}\n\
             expires       {expires}\n\
             \n\
             {once}It may do everything in the organization. What next:\n\
             \n  curl -sS -H \"Authorization: Bearer {token}\" {url}/api/headless/v1/organizations/{organization}/service-accounts\n\
             \n  PROVOST_URL={url} PROVOST_ORGANIZATION={organization} PROVOST_TOKEN=\"{token}\" provost service-accounts list\n\
             \n  {profile}\n\n"
        )
    }
}

/// Warns in the log of tokens of first admins that end soon: nobody may be left who could make another.
pub async fn warn_of_end(kernel: &Kernel) {
    let now = kernel.clock.now();
    let until = now.plus_secs(SOON_SECS);
    let ending = kernel
        .read_system(move |tx| service_accounts::ending_first_admins(tx, now, until))
        .await;
    match ending {
        Ok(ending) => {
            for (organization, expires_at) in ending {
                tracing::warn!(
                    "the token of the first admin of the organization {organization} ends at {}: rotate it, or make another \
                     account that may do as much; afterwards only `provost recover --organization {organization}` helps",
                    expires_at.to_rfc3339()
                );
            }
        }
        Err(error) => tracing::debug!(cause = error.private(), "{error}"),
    }
}

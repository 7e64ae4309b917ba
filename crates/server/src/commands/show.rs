//! How commands show things on standard output.

use super::failure::{Failure, Outcome};
use crate::app::NewOrganization;
use provost_client::cli::plain_table;
use provost_kernel::auth::OrganizationId;
use serde_json::json;
use std::io::Write;

/// Returns a table without lines, which reads well and cuts well.
pub fn table<const N: usize>(header: [&str; N], rows: &[Vec<String>]) -> String {
    plain_table(&header, rows, None)
}

/// Writes to standard output. A reader that has seen enough, such as `head`, is no failure.
pub fn out(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "standard output cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Whether somebody reads it changes nothing.
pub fn note(line: &str) {
    let mut err = std::io::stderr().lock();
    drop(writeln!(err, "{line}"));
}

/// Writes a token to standard output, where a reader that is gone is a failure: the token is lost.
pub fn token(text: &str, organization: &OrganizationId) -> Outcome {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| {
        Failure::new(format!(
            "the token could not be printed ({error}); `provost recover --organization {organization}` issues another"
        ))
    })
}

/// Shows a new account and its token as one JSON object.
pub fn account_json(made: &NewOrganization) -> Outcome {
    let object = json!({
        "organizationId": made.organization_id.as_str(),
        "serviceAccountId": made.service_account_id,
        "token": made.token.expose(),
    });
    token(&format!("{object}\n"), &made.organization_id)
}

/// Shows new accounts of organizations and their tokens to a person, after a sentence that says why.
pub fn accounts(words: &str, made: &[NewOrganization]) -> Outcome {
    let Some(first) = made.first() else { return Ok(()) };
    let row = |account: &NewOrganization| {
        vec![
            account.organization_id.to_string(),
            account.service_account_id.clone(),
            account.token.expose().to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = made.iter().map(row).collect();
    let table = table(["ORGANIZATION", "SERVICE ACCOUNT", "TOKEN"], &rows);
    token(&format!("{words}\n\n{table}"), &first.organization_id)
}

/// Shows a new account and its token to a person.
pub fn account(made: &NewOrganization) -> Outcome {
    let text = format!(
        "organization     {}\nservice account  {}\ntoken            {}\n\n\
         The token is shown this once. It may do everything in the organization.\n",
        made.organization_id,
        made.service_account_id,
        made.token.expose(),
    );
    token(&text, &made.organization_id)
}

//! How commands show things on standard output.

use crate::app::Bootstrapped;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::json;

/// Returns a table without lines, which reads well and cuts well.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header);
    table
}

/// Shows a new account and its token as one JSON object.
pub fn account_json(made: &Bootstrapped) {
    let object = json!({
        "organizationId": made.organization_id.as_str(),
        "serviceAccountId": made.service_account_id,
        "token": made.token.expose(),
    });
    println!("{object}");
}

/// Shows a new account and its token to a person.
pub fn account(made: &Bootstrapped) {
    println!("organization     {}", made.organization_id);
    println!("service account  {}", made.service_account_id);
    println!("token            {}", made.token.expose());
    println!();
    println!("The token is shown this once. It may do everything in the organization.");
}

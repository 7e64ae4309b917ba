//! Users who share a word: what was written before it was refused, for the check of a store.

use provost_kernel::db::Tx;
use provost_kernel::{Result, params, statements};

/// LIMIT: pairs that a check lists.
const LISTED: i64 = 100;

/// The generation of a user's organization.
macro_rules! generation_of {
    ($row:literal) => {
        concat!(
            "COALESCE((SELECT s.generation FROM directory_state s WHERE s.organization_id = ",
            $row,
            ".organization_id), 0)"
        )
    };
}

/// The users whose address is in the column `$column` of another user of their directory.
macro_rules! pairs {
    ($column:literal, $kind:literal) => {
        concat!(
            "SELECT u.organization_id, u.id, o.id, '",
            $kind,
            "' FROM directory_users u JOIN directory_users o ON o.organization_id = u.organization_id AND o.",
            $column,
            " = u.email_match AND o.directory_id = u.directory_id AND o.id <> u.id WHERE u.email_match IS NOT NULL AND u.valid_from <= ",
            generation_of!("u"),
            " AND u.valid_to > ",
            generation_of!("u"),
            " AND o.valid_from <= ",
            generation_of!("o"),
            " AND o.valid_to > ",
            generation_of!("o")
        )
    };
}

statements! {
    /// Users of one directory who have one address, or one the login name that is the other's address.
    ADDRESSES = unscoped("a check looks at every organization") concat!(pairs!("login_match", "login name"), " UNION ", pairs!("email_match", "e-mail address"), " AND u.id < o.id ORDER BY 1, 2, 3, 4 LIMIT ?1");
}

/// Returns a sentence for each e-mail address that another user of the directory has as well. LIMIT: 100.
pub fn addresses_of_others(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query(&ADDRESSES, params![LISTED], |row| {
        let (organization, user, other, word) = (row.str(0)?, row.str(1)?, row.str(2)?, row.str(3)?);
        Ok(format!(
            "in {organization} the e-mail address of the user {user} is the {word} of the user {other}: policies about \
             either are judged for both where an event says it. Give one of them another address"
        ))
    })
}

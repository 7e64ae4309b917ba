//! What a store says of itself: its facts, the keys that it knows, its organizations.

use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// Every key that the store knows.
    KEY_CHECKS = "SELECT key_id, check_value FROM key_checks ORDER BY key_id";
    /// Tells whether the store was ever migrated.
    HAS_KEY_CHECKS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'key_checks'",
        postgres: "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'key_checks'",
    };
    /// Remembers a key.
    ADD_KEY_CHECK = "INSERT INTO key_checks (key_id, check_value, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    /// Forgets a key that nothing needs.
    FORGET_KEY_CHECK = "DELETE FROM key_checks WHERE key_id = ?1";
    /// A fact about the installation.
    FACT = "SELECT value FROM installation WHERE name = ?1";
    /// Sets a fact.
    SET_FACT = "INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    /// Forgets a fact.
    DROP_FACT = "DELETE FROM installation WHERE name = ?1";
    /// How many organizations there are.
    COUNT_ORGANIZATIONS = unscoped("the installation's own question") "SELECT COUNT(*) FROM organizations";
    /// Every organization.
    ORGANIZATIONS = unscoped("the installation's own question") "SELECT organization_id, name FROM organizations ORDER BY organization_id";
    /// Takes the right to make the first organization. A second server waits here for the first one's commit.
    TAKE_BOOTSTRAP = unscoped("the installation's own") "INSERT INTO installation (name, value) VALUES ('bootstrap', ?1) ON CONFLICT DO NOTHING";
    /// Makes an organization, unless its key is taken.
    ADD_ORGANIZATION = "INSERT INTO organizations (organization_id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
}

/// What the store knows of one key: its label and its check value.
pub type KeyCheck = (String, Vec<u8>);

/// Returns label and check value of every key that a store knows.
pub fn known_keys(conn: &mut Conn) -> Result<Vec<KeyCheck>> {
    conn.read(known)
}

/// Returns the same within a transaction.
pub fn known(tx: &mut provost_kernel::db::Tx<'_>) -> Result<Vec<KeyCheck>> {
    tx.query(&KEY_CHECKS, params![], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Remembers a key, unless one of its name is known.
pub fn add_key(
    ctx: &mut OperationContext<'_>,
    label: &str,
    check_value: &[u8; 32],
    now: Timestamp,
) -> Result<()> {
    ctx.queue(&ADD_KEY_CHECK, params![label, check_value.as_slice(), now])
}

/// Says whether a store that may exist holds key checks, so that keys must not be made anew for it.
pub fn knows_keys(location: &Location) -> Result<bool> {
    let mut conn = Conn::open(location, Access::Write)?;
    conn.read(|tx| {
        let has_table = tx.query_opt(&HAS_KEY_CHECKS, params![], |row| row.get::<i64>(0))? == Some(1);
        Ok(has_table && tx.query_opt(&KEY_CHECKS, params![], |_| Ok(()))?.is_some())
    })
}

/// Returns the labels of the keys that a migrated store knows.
pub fn known_key_labels(location: &Location) -> Result<Vec<String>> {
    let mut conn = Conn::open(location, Access::Write)?;
    let known = known_keys(&mut conn)?;
    Ok(known.into_iter().map(|(label, _)| label).collect())
}

/// Makes the organization that the unit acts in.
///
/// Errors: `AlreadyExists` when its key is taken.
pub fn add_organization(ctx: &mut OperationContext<'_>, name: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    if ctx.execute(&ADD_ORGANIZATION, params![org, name, now])? == 1 {
        return Ok(());
    }
    Err(Error::new(
        provost_kernel::Code::AlreadyExists,
        format!("the organization {org} exists already"),
    ))
}

/// Takes the right to make the first organization, within the unit that makes it.
///
/// Errors: `Unavailable`, which leaves no audit entry, when another server had it or there is an organization.
pub fn take_bootstrap(ctx: &mut OperationContext<'_>) -> Result<()> {
    let org = ctx.org();
    let is_first = ctx.execute(&TAKE_BOOTSTRAP, params![org])? == 1
        && ctx.query_opt(&COUNT_ORGANIZATIONS, params![], |row| row.get::<i64>(0))? == Some(0);
    if is_first {
        return Ok(());
    }
    Err(Error::unavailable(
        "the first organization is made by another server",
    ))
}

/// Returns the keys of every organization.
pub fn organizations(tx: &mut provost_kernel::db::Tx<'_>) -> Result<Vec<OrganizationId>> {
    tx.query(&ORGANIZATIONS, params![], |row| {
        Ok(OrganizationId::from_store(row.get(0)?))
    })
}

/// Returns a fact about the installation.
pub fn fact(tx: &mut provost_kernel::db::Tx<'_>, name: &str) -> Result<Option<String>> {
    tx.query_opt(&FACT, params![name], |row| row.get(0))
}

/// Forgets a fact.
pub fn drop_fact(ctx: &mut OperationContext<'_>, name: &str) -> Result<()> {
    ctx.queue(&DROP_FACT, params![name])
}

/// Sets a fact about the installation, in a unit of its own chain.
pub fn set_fact(ctx: &mut OperationContext<'_>, name: &str, value: &str) -> Result<()> {
    ctx.queue(&SET_FACT, params![name, value])
}

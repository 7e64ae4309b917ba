//! How SQLite goes about statements: what must not read more than it asks for.

use super::statements::{all, parameters};
use crate::areas_beside::every_area;
use crate::support::START;
use provost_kernel::db::Location;
use provost_kernel::db::testing::migrated_file;

/// Returns how SQLite goes about a statement.
fn plan(name: &str, values: &[&str]) -> Option<Vec<String>> {
    let store = migrated_file("plans", every_area().migrations(), START);
    let Location::Sqlite(path) = store.location() else {
        return None;
    };
    let all = all();
    let statement = all.iter().find(|s| s.name.ends_with(name)).unwrap();
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut plan = conn
        .prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sqlite))
        .unwrap();
    let lines = plan
        .query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3))
        .unwrap();
    Some(lines.map(Result::unwrap).collect())
}

/// Who has thousands of accounts waits for the end of an admin otherwise: every token would be read for every account.
/// Proves SA-4.
#[test]
fn another_governor_is_looked_for_in_the_index_of_an_accounts_tokens() {
    let Some(plan) = plan("::OTHER_GOVERNORS", &["org", "sa_1", "0"]) else {
        return;
    };
    let tokens = plan.iter().find(|line| line.starts_with("SEARCH t ")).unwrap();
    assert!(tokens.contains("service_account_tokens_by_account"), "{plan:?}");
}

/// The hourly round would read the whole audit log for each page of rows otherwise.
#[test]
fn entries_about_a_row_are_looked_for_in_the_index_of_targets() {
    let Some(plan) = plan("::proofs::entries::ENTRIES", &["org", "[]"]) else {
        return;
    };
    let entries = "USING INDEX audit_entries_by_target (organization_id=? AND target_id=?)";
    assert!(plan.iter().any(|line| line.contains(entries)), "{plan:?}");
}

/// Whoever acts often on a record would cost a vote a row for each act otherwise.
/// Proves AL-5.
#[test]
fn hands_are_looked_for_one_by_one_in_their_index() {
    let Some(plan) = plan("::audit::hands::HANDS", &["org", "sa_1"]) else {
        return;
    };
    let looked: Vec<&String> = plan.iter().filter(|line| line.starts_with("SEARCH e ")).collect();
    let next = "audit_entries_by_hand (organization_id=? AND target_id=? AND actor_id>?)";
    let last = "audit_entries_by_hand (organization_id=? AND target_id=? AND actor_id=?)";
    let of = |index: &str| looked.iter().filter(|line| line.ends_with(index)).count();
    assert_eq!((looked.len(), of(next), of(last)), (3, 2, 1), "{plan:#?}");
}

/// Statements that walk an organization, and why that is meant.
const KNOWN: [(&str, &str); 4] = [
    (
        "::mcp_sessions::find::SCAN",
        "it reads a page in its order, and filters that may be absent narrow it",
    ),
    (
        "::resource_credentials::store::ASSIGNED_OF_RESOURCE",
        "an index of every assignment has every column; a page of a resource reads it, and no change does",
    ),
    ("::install_store::IN_USE", "it reads a page in its order"),
    (
        "::service_accounts::store::PURGE",
        "the check of a foreign key, of an account that ended long ago",
    ),
];

/// SQLite takes the key that gives the order, and walks a whole organization in it, past the index of what is asked for: nobody
/// keeps statistics. An order by an expression (`seq + 0`, `id || ''`) leaves it no such key.
#[test]
fn no_order_has_a_whole_organization_read_where_an_index_knows_the_rows() {
    let store = migrated_file("orders", every_area().migrations(), START);
    let Location::Sqlite(path) = store.location() else {
        return;
    };
    let conn = rusqlite::Connection::open(path).unwrap();
    let indexes = indexes(&conn);
    let mut walking = Vec::new();
    let mut looked_at = 0;
    for statement in all() {
        let Ok(mut plan) = conn.prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sqlite)) else {
            continue;
        };
        let nothing = rusqlite::params_from_iter(vec![""; parameters(statement.sqlite)]);
        let lines: Vec<String> = plan
            .query_map(nothing, |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        looked_at += 1;
        for line in lines.iter().filter(|line| line.ends_with("(organization_id=?)")) {
            let walked = line.split(' ').nth(1).unwrap_or_default();
            let better = indexes.iter().find(|(table, second, is_whole)| {
                let is_meant = walked == table || statement.sqlite.contains(&format!(" {table} {walked} "));
                let names = [" = ?", " IN ("]
                    .map(|asked| [format!(" {second}{asked}"), format!(" {walked}.{second}{asked}")]);
                let names = names.concat();
                *is_whole && is_meant && names.iter().any(|name| statement.sqlite.contains(name))
            });
            let is_known = KNOWN.iter().any(|(known, _)| statement.name.ends_with(known));
            if let Some((_, second, _)) = better.filter(|_| !is_known) {
                walking.push(format!("{} could go by {second}: {line}", statement.name));
            }
        }
    }
    assert!(looked_at > 400, "{looked_at}");
    assert!(walking.is_empty(), "{walking:#?}");
}

/// Returns of each index that begins with the organization its table, its second column, and whether it has every row.
fn indexes(conn: &rusqlite::Connection) -> Vec<(String, String, bool)> {
    let mut list = conn
        .prepare(
            "SELECT m.name, c.name, l.partial FROM sqlite_schema m, pragma_index_list(m.name) l, pragma_index_info(l.name) o, \
             pragma_index_info(l.name) c \
             WHERE m.type = 'table' AND o.seqno = 0 AND o.name = 'organization_id' AND c.seqno = 1",
        )
        .unwrap();
    list.query_map([], |row| Ok((row.get(0)?, row.get(1)?, !row.get::<_, bool>(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Each user who goes would read every device of the organization otherwise, a hundred of them in one unit; and each person who asks
/// for the own ones.
#[test]
fn the_devices_of_an_owner_are_looked_for_in_their_index() {
    for (name, values) in [
        ("::fleet::owners::OWNED", vec!["org", "usr_1"]),
        ("::fleet::store::OWN", vec!["org", "usr_1", "9", "9"]),
    ] {
        let Some(plan) = plan(name, &values) else { return };
        let index = "devices_by_owner (organization_id=? AND owner_user_id=?";
        assert!(plan.iter().any(|line| line.contains(index)), "{plan:?}");
    }
}

/// A report, a decision and a page would walk every observation of the organization otherwise, of which there are hundreds of thousands.
#[test]
fn what_devices_have_is_looked_for_in_indexes_of_a_device_or_a_server() {
    let of_device = "(organization_id=? AND device_id=?";
    for (name, count, index) in [
        (
            "observations::OF_SECTION",
            5,
            "by_section (organization_id=? AND device_id=? AND client=? AND account=?",
        ),
        (
            "observations::OF_DEVICE",
            4,
            "there_by_device (organization_id=? AND device_id=? AND seq<?",
        ),
        (
            "observations::OF_SERVER",
            4,
            "by_server (organization_id=? AND server_id=? AND seq<?",
        ),
        ("facts::WAYS", 3, "by_server (organization_id=? AND server_id=?"),
        ("observations::COUNT", 2, of_device),
        ("maintenance::RETIRE", 4, of_device),
        ("maintenance::ERASE", 3, of_device),
        (
            "store::COUNTS",
            51,
            "there_by_server (organization_id=? AND server_id=?",
        ),
        (
            "store::ASSET_COUNTS",
            51,
            "there_by_asset (organization_id=? AND asset_id=?",
        ),
        ("joining::NAMED", 3, of_device),
    ] {
        let Some(plan) = plan(&format!("inventory::{name}"), &vec!["9"; count]) else {
            return;
        };
        let of_observations = || {
            let lines = plan.iter();
            lines.filter(|line| line.contains("INDEX inventory_observations_"))
        };
        let is_by_it = of_observations().any(|line| line.contains(index));
        let walks = of_observations().any(|line| line.ends_with("(organization_id=?)"));
        assert!(is_by_it && !walks, "{name}: {plan:?}");
    }
}

/// Each minute would walk every observation of every organization otherwise, for names that hardly anybody has.
#[test]
fn names_of_projects_are_looked_for_in_an_index_of_no_others() {
    for (name, count) in [("ORGANIZATIONS", 0), ("ASK_AGAIN", 2), ("FORGET", 2)] {
        let Some(plan) = plan(&format!("inventory::project_names::{name}"), &vec!["9"; count]) else {
            return;
        };
        let index = "inventory_observations_named (organization_id=? AND project_name>?";
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
        assert!(
            !plan.iter().any(|line| line.contains("TEMP B-TREE")),
            "{name}: {plan:?}"
        );
    }
}

/// A count of what is used would walk every observation, every device and every use of the organization otherwise, in a round for each person.
#[test]
fn what_a_person_has_is_looked_for_in_indexes_of_the_person() {
    for (name, count, indexes) in [
        (
            "NAMED",
            3,
            vec![
                "devices_by_owner (organization_id=? AND owner_user_id=?",
                "inventory_observations_by_section (organization_id=? AND device_id=?",
            ],
        ),
        (
            "LOOKED",
            3,
            vec!["devices_by_owner (organization_id=? AND owner_user_id=?"],
        ),
        ("KEPT", 2, vec!["(organization_id=? AND user_id=?"]),
    ] {
        let Some(plan) = plan(&format!("inventory::joining::{name}"), &vec!["9"; count]) else {
            return;
        };
        for index in indexes {
            assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
        }
    }
}

/// The round of all areas would walk every enrolment token by which a device enrolled otherwise, for ever.
#[test]
fn enrolment_tokens_that_ended_unused_are_looked_for_in_their_index() {
    let Some(plan) = plan("::PRUNE_ENROLMENT_TOKENS", &["1"]) else {
        return;
    };
    let index = "enrolment_tokens_by_end (expires_at<?)";
    assert!(plan.iter().any(|line| line.contains(index)), "{plan:?}");
    // Of each that goes it is looked for devices that refer to it.
    let others = plan.iter().filter(|line| line.contains("devices"));
    let by_row = "devices_by_enrolment (organization_id=? AND enrolment_token_id=?)";
    assert!(others.into_iter().all(|line| line.contains(by_row)), "{plan:?}");
}

/// Nobody could retire a device with very many tokens that ended otherwise: the unit would read each of them.
/// Proves FL-2.
#[test]
fn the_tokens_of_a_device_that_work_are_looked_for_in_an_index_of_no_others() {
    for (name, count) in [
        ("TOKENS", 4),
        ("COUNT_LIVING", 3),
        ("UNUSED", 4),
        ("UNUSED_LONG", 7),
        ("COUNT_FORMER", 4),
    ] {
        let Some(plan) = plan(&format!("fleet::token_store::{name}"), &vec!["9"; count]) else {
            return;
        };
        let index = "device_tokens_living (organization_id=? AND device_id=?";
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
    }
}

/// A hundred people who leave in one unit would have every account of the organization read a hundred times otherwise.
#[test]
fn the_accounts_of_an_owner_are_looked_for_in_their_index() {
    let Some(plan) = plan("::service_accounts::store::OWNED", &["org", "usr_1"]) else {
        return;
    };
    let index = "service_accounts_by_owner (organization_id=? AND owner_console_user_id=?";
    assert!(plan.iter().any(|line| line.contains(index)), "{plan:?}");
}

/// Each decision that asks for an approval, each round and each person who goes would read what ended in 400 days otherwise.
#[test]
fn what_is_open_of_approvals_is_looked_for_in_indexes_of_nothing_else() {
    for (name, count, index) in [
        ("OF_CALL", 2, "approvals_open (organization_id=? AND call_mac=?"),
        ("OPEN", 1, "approvals_open_by_id (organization_id=?"),
        (
            "OF_PARTY",
            3,
            "approvals_of_subject (organization_id=? AND subject_kind=? AND subject_id=?",
        ),
        ("LIST_OPEN", 5, "approvals_open_by_id (organization_id=? AND id<?"),
        (
            "LIST_WAITING",
            4,
            "approvals_open_by_id (organization_id=? AND id<?",
        ),
        (
            "COUNT",
            3,
            "approvals_waiting (organization_id=? AND deadline_at>?",
        ),
        (
            "COUNT_OF_ASKER",
            6,
            "approvals_by_asker (organization_id=? AND asker_kind=? AND asker_id=? AND created_at>?",
        ),
        (
            "COUNT_OF_OWNER",
            5,
            "approvals_by_owner (organization_id=? AND owner_id=? AND created_at>?",
        ),
        (
            "WAITING_OF_OWNER",
            6,
            "approvals_waiting_of_owner (organization_id=? AND owner_id=? AND deadline_at>?",
        ),
        (
            "OPERATIONS_ASKED",
            4,
            "approvals_by_asker (organization_id=? AND asker_kind=? AND asker_id=? AND created_at>?",
        ),
        (
            "OPERATIONS_WAITING",
            4,
            "approvals_waiting_of_owner (organization_id=? AND owner_id=? AND deadline_at>?",
        ),
        (
            "ASKED",
            5,
            "approvals_of_asker (organization_id=? AND asker_kind=? AND asker_id=? AND id<?",
        ),
        (
            "ASKED_FOR",
            5,
            "approvals_of_subject (organization_id=? AND subject_kind=? AND subject_id=? AND id<?",
        ),
        ("OVERDUE", 3, "approvals_open_by_id"),
        ("ERASE_SHOWN", 2, "approvals_shown (ended_at<?"),
        ("FORGET", 2, "approvals_by_end (ended_at<?"),
    ] {
        let Some(plan) = plan(&format!("approvals::store::{name}"), &vec!["9"; count]) else {
            return;
        };
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
    }
    for (name, count, index) in [
        (
            "OF_PERSON",
            2,
            "approval_delegations_from (organization_id=? AND from_user_id=?",
        ),
        (
            "OF_PERSON",
            2,
            "approval_delegations_to (organization_id=? AND to_user_id=?",
        ),
        ("OPEN", 1, "approval_delegations_open (organization_id=?"),
        ("OVERDUE", 3, "approval_delegations_open"),
        ("FORGET", 2, "approval_delegations_by_end (ended_at<?"),
    ] {
        let Some(plan) = plan(
            &format!("approvals::delegations::store::{name}"),
            &vec!["9"; count],
        ) else {
            return;
        };
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
    }
}

/// Each heartbeat has the bypass of its device, and each end those of one maker.
#[test]
fn bypasses_are_looked_for_in_indexes_of_nothing_else() {
    for (name, count, index) in [
        (
            "OF_MAKER",
            2,
            "device_bypasses_of_maker (organization_id=? AND created_by=?",
        ),
        (
            "OF_DEVICE",
            4,
            "device_bypasses_of_device (organization_id=? AND device_id=? AND id<?",
        ),
        (
            "USED",
            4,
            "device_bypasses_of_device (organization_id=? AND device_id=?",
        ),
        ("OPEN_OF_ALL", 3, "device_bypasses_by_time"),
        ("FORGET", 2, "device_bypasses_by_end (ended_at<?"),
    ] {
        let Some(plan) = plan(&format!("fleet::bypass_store::{name}"), &vec!["9"; count]) else {
            return;
        };
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
    }
}

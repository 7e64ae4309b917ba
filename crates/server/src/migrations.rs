//! The store's history: the same numbers and names for both engines, forward only.

use provost_kernel::db::Migration;

macro_rules! migrations {
    ($($number:literal $name:literal;)*) => {
        /// Every migration, in order.
        pub const ALL: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
        },)*];
    };
}

migrations! {
    1 "0001_kernel";
    2 "0002_service_accounts";
    3 "0003_settings";
    4 "0004_directory";
    5 "0005_managed_config";
    6 "0006_skill_registry";
    7 "0007_resources";
    8 "0008_policies";
    9 "0009_history";
    10 "0010_backtests";
    11 "0011_mcp_sessions";
    12 "0012_oauth";
    13 "0013_match_keys";
    14 "0014_history_order";
    15 "0015_directory_return";
    16 "0016_sessions_and_links";
    17 "0017_restore_held";
    18 "0018_token_scopes";
    19 "0019_managed_config_pull";
    20 "0020_import_warnings";
    21 "0021_former_rights";
    22 "0022_makers_of_links_and_tokens";
    23 "0023_event_epochs";
    24 "0024_right_proofs";
    25 "0025_key_readers";
    26 "0026_entries_of_targets";
    27 "0027_session_lists";
}

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
}

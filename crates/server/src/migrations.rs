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
}

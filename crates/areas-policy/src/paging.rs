//! What is asked of lists that are narrowed by nothing.

use provost_kernel::page::{Cursor, Limit};
use schemars::JsonSchema;
use serde::Deserialize;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PageQuery {
    /// How many at most.
    #[serde(default)]
    pub limit: Limit,
    /// Where the list goes on.
    pub cursor: Option<Cursor>,
}

//! What is declared of operations that an organization may want two people for, and what a request says of it.

use schemars::JsonSchema;
use serde::Deserialize;

/// What is declared of an operation that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondPerson {
    /// The words by one of which it is named.
    pub named: &'static [&'static str],
    /// It is among those that decide who may say yes, and by what: as soon as any word is named it needs a second person as well, where
    /// [`crate::operation::Operation::touches_deciders`] says so.
    pub of_deciders: bool,
}

/// What a request says of a second person, in its query.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct SaidOfSecondPerson {
    /// The approval of this very request by a second person, where the organization wants one.
    #[schemars(length(min = 1, max = 64))]
    pub approval_id: Option<String>,
    /// `true` asks for that approval where one is needed, and does nothing else: the answer is 202. Where none is needed the request is
    /// performed.
    #[serde(default)]
    pub request_approval: bool,
}

/// The names of the parameters.
pub const PARAMETERS: [&str; 2] = ["approvalId", "requestApproval"];

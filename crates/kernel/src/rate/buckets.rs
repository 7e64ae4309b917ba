//! The rate buckets of D1.11 that every operation takes from; an area declares those of its own acts.

use super::Bucket;

/// Reads of one principal.
pub const READ: Bucket = Bucket {
    name: "read",
    burst: 300,
    per_second_num: 100,
    per_second_den: 1,
};
/// Writes of one principal.
pub const WRITE: Bucket = Bucket {
    name: "write",
    burst: 100,
    per_second_num: 20,
    per_second_den: 1,
};
/// Questions of one principal about many records at once.
pub const RESOLVE: Bucket = Bucket {
    name: "resolve",
    burst: 50,
    per_second_num: 10,
    per_second_den: 1,
};
/// Such questions of one organization.
pub const ORGANIZATION_RESOLVE: Bucket = Bucket {
    name: "organization-resolve",
    burst: 200,
    per_second_num: 40,
    per_second_den: 1,
};
/// Decisions and exported events of one principal.
pub const DECIDE: Bucket = Bucket {
    name: "decide",
    burst: 4000,
    per_second_num: 2000,
    per_second_den: 1,
};
/// Decisions and exported events of one organization.
pub const ORGANIZATION_DECIDE: Bucket = Bucket {
    name: "organization-decide",
    burst: 16_000,
    per_second_num: 8000,
    per_second_den: 1,
};
/// What one machine says of itself, and enrolments by one token.
pub const MACHINE: Bucket = Bucket {
    name: "machine",
    burst: 100,
    per_second_num: 10,
    per_second_den: 1,
};
/// What the machines of one organization say.
pub const ORGANIZATION_MACHINE: Bucket = Bucket {
    name: "organization-machine",
    burst: 1600,
    per_second_num: 400,
    per_second_den: 1,
};
/// Reads of one organization.
pub const ORGANIZATION_READ: Bucket = Bucket {
    name: "organization-read",
    burst: 1200,
    per_second_num: 400,
    per_second_den: 1,
};
/// Writes of one organization.
pub const ORGANIZATION_WRITE: Bucket = Bucket {
    name: "organization-write",
    burst: 400,
    per_second_num: 80,
    per_second_den: 1,
};
/// Failed authentications of one network address.
pub const AUTHENTICATION: Bucket = Bucket {
    name: "authentication",
    burst: 30,
    per_second_num: 30,
    per_second_den: 60,
};
/// Fetches of a lost answer by the token that rotated itself.
pub const SELF_REPLAY: Bucket = Bucket {
    name: "self-replay",
    burst: 10,
    per_second_num: 10,
    per_second_den: 60,
};

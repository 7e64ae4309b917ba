//! The surfaces of the product: what callers see of operations.

pub mod edge;

//! A running kernel for tests.

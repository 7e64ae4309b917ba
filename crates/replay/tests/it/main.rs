//! The recorded form of events, and backtests over them.

#![cfg(test)]

mod record;

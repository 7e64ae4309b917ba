//! Tests of the crate as others see it.

mod access_token;

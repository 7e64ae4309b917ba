//! Looks at a machine.

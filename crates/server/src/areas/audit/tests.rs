//! Scenarios of the area.

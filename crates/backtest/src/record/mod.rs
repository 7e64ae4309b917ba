//! The one form of a judged event in the history: which column holds what, and the way there and back.
//!
//! ```text
//!   attribute is present   its column has the value
//!   attribute is missing   its column has none, and its name is a member of the column `missing`
//!   attribute is absent    its column has none
//! ```
//!
//! INVARIANT RE-1: an event that is read back from the history equals the one that was recorded, absent and missing
//! attributes kept apart.
//! INVARIANT RE-2: the columns of a recorded event only grow at their end; the list below is their order, whatever
//! the order of the catalogue is.
//!
//! Absent on purpose: where rows are stored, ids of events, and what was asked of the caller on the wire.

mod column;
mod origin;
mod owned;
mod row;
mod row_batch;
mod view;

pub use column::{SCHEMA_VERSION, position, schema};
pub use origin::{DECISIONS, Imports, OTLP, Origin, device_source, is_device};
pub(crate) use origin::{origin, origin_positions};
pub use owned::{Attribute, Basis, Decision, Mode, OwnedRecord};
pub use row::{event, owned, put};
pub use row_batch::{Codes, RowBatch};
pub use view::{AttributeProjection, View, add_texts};

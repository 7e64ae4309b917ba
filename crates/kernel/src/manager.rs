//! Who manages records from outside: Terraform and its like.

/// The two labels by which a managing program names itself and its workspace. They coordinate; they prove
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The manager.
    pub id: String,
    /// Its workspace.
    pub instance: String,
}

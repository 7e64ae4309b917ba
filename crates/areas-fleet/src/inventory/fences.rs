//! Who reads the details of what the area does, and what its events say.
//!
//! Whoever reads the log may read the list of servers and the inventories of devices, so that what is done to them says no more.

use super::model::{ServerId, Standing};
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// A server.
    OfServer {
        /// The server.
        server_id: ServerId,
    } like r#"{"serverId":"srv_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;
    /// A server, and how it stands now.
    OfStanding {
        /// The server.
        server_id: ServerId,
        /// How it stands.
        standing: Standing,
    } like r#"{"serverId":"srv_01kaf9q2m4x7t8v3c5d6e0g1h2","standing":"denied"}"#;
}

/// The action under which the log has a report with servers that nobody had seen before.
pub const DISCOVERY: &str = "inventory.mcp_server.discovered";

provost_kernel::fences! {
    acts Readers::Everybody, [DISCOVERY];
    targets {
        /// An MCP server.
        SERVER = "inventory_mcp_server" => Readers::Everybody;
        /// What is on a device.
        INVENTORY = "device_inventory" => Readers::Everybody;
    }
    events {
        /// A device reported an MCP server that nobody had seen before.
        DISCOVERED: OfServer = "inventory.mcp_server.discovered" => Readers::Everybody;
        /// An admin decided about an MCP server.
        STANDING_CHANGED: OfStanding = "inventory.mcp_server.standing_changed" => Readers::Everybody;
    }
}

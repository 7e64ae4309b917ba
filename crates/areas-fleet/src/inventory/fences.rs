//! Who reads the details of what the area does, and what its events say.
//!
//! Whoever reads the log may read the list of servers and the inventories of devices, so that what is done to them says no more.

use super::model::{ServerId, Standing};
use crate::fleet::DeviceId;
use provost_inventory::wire::Pattern;
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
    /// A credential in a file of a device.
    OfCredential {
        /// The device.
        device_id: DeviceId,
        /// What it looks like.
        pattern: Pattern,
        /// Its fingerprint under a key of the device; of a token of this program the part that may be shown.
        fingerprint: String,
        /// The kind of the file.
        place: String,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","pattern":"github_token","fingerprint":"0123456789abcdef0123456789abcdef","place":"~/.claude.json"}"#;
}

/// The action under which the log has a report with servers that nobody had seen before.
pub const DISCOVERY: &str = "inventory.mcp_server.discovered";

/// The action under which the log has a report with credentials that came or went.
pub const CREDENTIALS: &str = "inventory.credentials.changed";

provost_kernel::fences! {
    acts Readers::Everybody, [DISCOVERY, CREDENTIALS];
    targets {
        /// An MCP server.
        SERVER = "inventory_mcp_server" => Readers::Everybody;
        /// What is on a device.
        INVENTORY = "device_inventory" => Readers::Everybody;
    }
    events {
        /// A device reported a credential in a file that was not there before.
        CREDENTIAL_FOUND: OfCredential = "inventory.credential.found" => Readers::Everybody;
        /// A complete look no longer found a credential.
        CREDENTIAL_GONE: OfCredential = "inventory.credential.gone" => Readers::Everybody;
        /// A device reported an MCP server that nobody had seen before.
        DISCOVERED: OfServer = "inventory.mcp_server.discovered" => Readers::Everybody;
        /// An admin decided about an MCP server.
        STANDING_CHANGED: OfStanding = "inventory.mcp_server.standing_changed" => Readers::Everybody;
    }
}

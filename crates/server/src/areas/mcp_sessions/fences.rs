//! Who reads the details of what the area does.
//!
//! Sessions are read by admins alone, and by auditors in the log.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Overseers, ["mcp.session.issued", "mcp.sessions.expired", "mcp.sessions.revoked"];
    targets {
        /// A session.
        SESSION = "mcp_session" => Readers::Overseers;
        /// A registered client, which sessions name and the area above keeps.
        CLIENT = "mcp_client" => Readers::Overseers;
    }
    events {
        ISSUED = "mcp.session.issued" => Readers::Overseers;
        REVOKED = "mcp.session.revoked" => Readers::Overseers;
        EXPIRED = "mcp.session.expired" => Readers::Overseers;
    }
}

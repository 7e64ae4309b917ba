//! Who reads the details of what the area does.
//!
//! Resources are inventory.

use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::fences! {
    acts Readers::Everybody, [];
    targets {
        /// A resource.
        RESOURCE = "resource" => Readers::Everybody;
        /// A gateway of resources.
        GATEWAY = "resource_gateway" => Readers::Everybody;
    }
}

/// What entries say of resources.
pub static RESOURCES: Testimony = Testimony {
    table: "resources",
    kind: &RESOURCE,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::new("protocol", "/protocol"),
        Word::new("upstream_host", "/upstreamHost"),
        Word::new("upstream_port", "/upstreamPort"),
        Word::of("upstream_tls", "/upstreamTls", Form::Flag),
        Word::of("enabled", "/enabled", Form::Flag),
        Word::of("transparent_routing", "/transparentRouting", Form::Flag),
        Word::new("gateway_id", "/gatewayId"),
        Word::new("owner_id", "/ownerId"),
    ],
};

/// What entries say of gateways.
pub static GATEWAYS: Testimony = Testimony {
    table: "resource_gateways",
    kind: &GATEWAY,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::new("hostname", "/hostname"),
        Word::of("enabled", "/enabled", Form::Flag),
        Word::new("owner_id", "/ownerId"),
    ],
};

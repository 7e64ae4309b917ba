//! The words and rules of gateways, without storage.

use crate::resources::definition::{Breaches, SingleLine};
use crate::resources::model::{is_host_name, yes};
use crate::resources::ownership::Owner;
use provost_kernel::text::Name;
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(GatewayId, "rgw", "Names a resource gateway.");

/// What a gateway is made of; a write replaces all of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct GatewayBody {
    /// Unique in the organization, upper and lower case alike.
    pub name: Name,
    /// Where clients reach it.
    pub hostname: SingleLine<3, 253>,
    /// Whether it serves.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl GatewayBody {
    /// Returns what the schema cannot say.
    pub fn breaches(&self) -> Breaches {
        let mut breaches = Breaches::default();
        breaches.unless(
            is_host_name(self.hostname.as_str()),
            "/hostname",
            "must be a host name",
        );
        breaches
    }
}

/// A gateway as it is stored.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Its id.
    pub id: GatewayId,
    /// Its name.
    pub name: String,
    /// Where clients reach it.
    pub hostname: String,
    /// Whether it serves.
    pub enabled: bool,
    /// Who manages it.
    pub owner: Owner,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A gateway as its readers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResourceGateway")]
pub struct GatewayView {
    id: GatewayId,
    organization_id: String,
    name: String,
    hostname: String,
    enabled: bool,
    /// `service` or `terraform`.
    management_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_instance: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Returns what a reader sees.
pub fn view(organization: &str, gateway: Gateway) -> GatewayView {
    let [manager_id, manager_instance, _] = gateway.owner.columns().map(|text| text.map(str::to_owned));
    GatewayView {
        management_mode: gateway.owner.mode(),
        manager_id,
        manager_instance,
        id: gateway.id,
        organization_id: organization.to_owned(),
        name: gateway.name,
        hostname: gateway.hostname,
        enabled: gateway.enabled,
        created_at: gateway.created_at,
        updated_at: gateway.updated_at,
    }
}

/// The path of operations on one gateway.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct GatewayPath {
    /// The gateway.
    pub resource_gateway_id: GatewayId,
}

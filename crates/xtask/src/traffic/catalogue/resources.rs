//! Resources, gateways and credentials.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::Outcome;
use crate::traffic::maker::Maker;
use crate::traffic::{credential, resource as body};

/// What no log may show.
pub const SECRET: &str = "a-credential-secret-of-the-fault-driver";

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessResource", |maker| {
        Ok(maker.call("POST", "resources", body(maker.unique, "api.example.com")))
    }),
    keyed("updateHeadlessResource", |maker| {
        let path = resource(maker)?;
        Ok(maker.call("PUT", &path, body(maker.unique, "api.example.com")))
    }),
    keyed("deleteHeadlessResource", |maker| {
        let path = resource(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("createHeadlessResourceGateway", |maker| {
        Ok(maker.call("POST", "resource-gateways", gateway(maker.unique)))
    }),
    keyed("updateHeadlessResourceGateway", |maker| {
        let path = made_gateway(maker)?;
        Ok(maker.call("PUT", &path, gateway(maker.unique)))
    }),
    keyed("deleteHeadlessResourceGateway", |maker| {
        let path = made_gateway(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("createHeadlessResourceCredential", |maker| {
        let path = format!("{}/credentials", resource(maker)?);
        Ok(maker.call("POST", &path, credential("one", SECRET)).showing(path))
    }),
    keyed("updateHeadlessResourceCredential", |maker| {
        let path = made_credential(maker)?;
        Ok(maker.call("PUT", &path, credential("one", SECRET)).showing(path))
    }),
    keyed("deleteHeadlessResourceCredential", |maker| {
        let path = made_credential(maker)?;
        Ok(maker.bare("DELETE", &path).showing(path))
    }),
    keyed("verifyHeadlessResourceCredential", |maker| {
        let path = made_credential(maker)?;
        Ok(maker.bare("POST", &format!("{path}/verify")))
    }),
];

fn resource(maker: &mut Maker<'_>) -> Outcome<String> {
    Ok(format!("resources/{}", maker.resource()?))
}

fn gateway(name: &str) -> Value {
    json!({ "name": name, "hostname": "gateway.example.com", "enabled": true })
}

fn made_gateway(maker: &mut Maker<'_>) -> Outcome<String> {
    let id = maker.make("resource-gateways", gateway(&format!("for {}", maker.unique)))?;
    Ok(format!("resource-gateways/{id}"))
}

fn made_credential(maker: &mut Maker<'_>) -> Outcome<String> {
    let path = format!("{}/credentials", resource(maker)?);
    let id = maker.make(&path, credential("one", SECRET))?;
    Ok(format!("{path}/{id}"))
}

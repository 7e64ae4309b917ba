//! Names to addresses.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// What a resolver answers, sometime.
pub type Answer<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of `host`; asked once for each fetch.
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

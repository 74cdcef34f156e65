//! Where a plan's requests go.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::plan::PlanError;

/// An address, found once, before the first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub address: SocketAddr,
    /// Host and port as HTTP names them.
    pub authority: String,
}

impl Target {
    /// The first address of the header's host.
    pub fn resolve(host: &str, port: u16) -> Result<Self, PlanError> {
        let unusable = |what: String| PlanError { line: 1, what };
        let address = (host, port)
            .to_socket_addrs()
            .map_err(|error| unusable(format!("host {host:?}: {error}")))?
            .next()
            .ok_or_else(|| unusable(format!("host {host:?} has no address")))?;
        let authority = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        Ok(Target { address, authority })
    }
}

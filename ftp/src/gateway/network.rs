//! Name resolution and outgoing connections. A session uses both through [`Network`], so a test can
//! replace them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use anyhow::Result;
use tokio::net::TcpStream;

use crate::gateway::data;

/// A future in a box, which the methods of a trait object can return.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves names and connects, for all sessions of a gateway.
pub trait Network: Send + Sync {
    /// Returns the addresses of a name, each with `port`.
    ///
    /// # Errors
    /// Fails if the name cannot be resolved.
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Later<'a, io::Result<Vec<SocketAddr>>>;

    /// Connects to `to` from the address `from`, or from any address if `from` is unspecified.
    ///
    /// # Errors
    /// Fails if the address cannot be bound, or if the connection is refused.
    fn connect(&self, to: SocketAddr, from: IpAddr) -> Later<'_, Result<TcpStream>>;
}

/// The network of this host.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Network for System {
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Later<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, port)).await?.collect()) })
    }

    fn connect(&self, to: SocketAddr, from: IpAddr) -> Later<'_, Result<TcpStream>> {
        Box::pin(data::connect(to, from))
    }
}

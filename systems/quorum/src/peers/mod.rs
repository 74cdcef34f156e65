//! The connections between nodes: one kept TCP connection for each ordered pair, requests on it
//! multiplexed. Knows messages, not what they mean.

mod frame;
mod inbound;
mod link;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

pub use self::frame::Message;
pub use self::inbound::Handler;
use self::inbound::{Greeter, accept};
use self::link::Link;
pub use self::link::PeerError;
use crate::clock::NodeId;
use crate::disturbances::Flags;

/// The first message of a connection: nodes of different clusters must not mix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub magic: String,
    pub node: String,
    /// What all nodes of a cluster must have been told alike.
    pub cluster: String,
}

impl Hello {
    pub fn new(node: &str, cluster: String) -> Self {
        Self {
            magic: "quorum 1".into(),
            node: node.into(),
            cluster,
        }
    }

    fn encode(&self) -> Bytes {
        let encoded = postcard::to_stdvec(self).expect("a greeting always encodes");
        encoded.into()
    }

    /// The greeting of a node of the same cluster, or why it is refused.
    fn check(&self, theirs: &[u8]) -> Result<Self, String> {
        let theirs = postcard::from_bytes::<Self>(theirs).ok();
        match theirs.filter(|theirs| theirs.magic == self.magic) {
            None => Err(format!("{} speaks another peer protocol", self.node)),
            Some(theirs) if theirs.cluster != self.cluster => Err(format!(
                "{} was started for another cluster: {} there, {} here",
                self.node, self.cluster, theirs.cluster
            )),
            Some(theirs) => Ok(theirs),
        }
    }
}

pub struct Peers {
    links: BTreeMap<NodeId, Link>,
    hello: Hello,
    max_body: usize,
}

impl Peers {
    /// `others`: every node of the cluster but this one.
    pub fn new(
        others: impl IntoIterator<Item = (NodeId, String, SocketAddr)>,
        hello: Hello,
        max_body: usize,
        planted: Flags,
    ) -> Self {
        let link = |(id, name, address)| (id, Link::new(name, address, planted));
        Self {
            links: others.into_iter().map(link).collect(),
            hello,
            max_body,
        }
    }

    /// Starts to accept peers and to connect to them.
    pub fn start(self: &Arc<Self>, listener: TcpListener, handler: Arc<dyn Handler>) {
        tokio::spawn(accept(listener, self.clone(), handler, self.max_body));
        for &id in self.links.keys() {
            let peers = self.clone();
            tokio::spawn(async move {
                let hello = peers.hello.encode();
                peers.links[&id].keep_connected(hello, peers.max_body).await;
            });
        }
    }

    /// How many others there are.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    pub fn name(&self, id: NodeId) -> &str {
        &self.links[&id].name
    }

    /// Names of the peers, and whether the connection to them stands.
    pub fn status(&self) -> BTreeMap<&str, bool> {
        let links = self.links.values();
        links
            .map(|link| (&*link.name, link.is_connected()))
            .collect()
    }

    pub fn is_connected(&self, id: NodeId) -> bool {
        self.links[&id].is_connected()
    }

    /// Waits until this node reaches all others and they reach it.
    pub async fn until_all_connected(&self) {
        for link in self.links.values() {
            link.until_connected().await;
        }
    }

    pub async fn request(
        &self,
        id: NodeId,
        message: Message,
        limit: Duration,
    ) -> Result<Message, PeerError> {
        self.links[&id].request(message, limit).await
    }
}

impl Greeter for Peers {
    /// Takes note of a peer that connected.
    fn greeted_with(&self, greeting: &[u8]) -> Result<(), String> {
        let theirs = self.hello.check(greeting)?;
        let link = self.links.values().find(|link| link.name == theirs.node);
        link.map(Link::greeted)
            .ok_or_else(|| format!("{} has no peer {}", self.hello.node, theirs.node))
    }
}

#[cfg(test)]
mod tests;

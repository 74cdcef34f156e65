//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::choice::Choice;
use crate::clock::NodeId;
use crate::defects::Flags;
use crate::disturbances;
use crate::placement::{Names, Placement};

/// A small replicated object store whose round trips are known by construction: the phantom that
/// wanlat calibrates itself with, not a product.
#[derive(Parser)]
#[command(name = "quorum", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Runs one node until it is killed; prints `ready` once it listens and reaches all peers
    Serve(Serve),
}

#[derive(clap::Args, Clone, Debug)]
pub struct Serve {
    /// This node's name, one of those given with --peer
    #[arg(long)]
    pub name: String,
    /// Directory of this node's replica; made if it does not exist
    #[arg(long)]
    pub data: PathBuf,
    /// Address of the S3 API; GET /healthz is served two ports above
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub s3: SocketAddr,
    /// Address on which other nodes are heard
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub peer_listen: SocketAddr,
    /// Every node of the cluster, this one too, in the same order everywhere
    #[arg(long = "peer", value_name = "NAME=ADDRESS:PORT", required = true)]
    pub peers: Vec<Peer>,
    /// leaderless, leader, rounds:K, or mixture:PERCENT:J:K
    #[arg(long)]
    pub protocol: Choice,
    /// The leader's name; without it, the first --peer (protocol leader only)
    #[arg(long)]
    pub leader: Option<String>,
    /// The one access key that requests may be signed with
    #[arg(long)]
    pub access_key: String,
    /// Its secret
    #[arg(long)]
    pub secret_key: String,
    /// How long a node waits for another before it counts as failed
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    pub peer_timeout_ms: u64,
    /// The largest object accepted
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub max_object_bytes: u32,
    /// Address of Bob's API, served beside S3 and apart from what S3 stores
    #[arg(long, value_name = "ADDRESS:PORT", requires = "vdisks")]
    pub bob: Option<SocketAddr>,
    /// The nodes that hold a replica of vdisk 0, then those of vdisk 1, ..., alike everywhere
    #[arg(long = "vdisk", value_name = "NAME,NAME,...", requires = "bob")]
    pub vdisks: Vec<Names>,
    /// Replicas that must have a Put or a Delete; without it, a majority of the vdisk's
    #[arg(long, value_name = "N", requires = "bob")]
    pub bob_quorum: Option<usize>,
    #[command(flatten)]
    pub defects: Flags,
    #[command(flatten)]
    pub disturbances: disturbances::Flags,
}

/// `NAME=ADDRESS:PORT`
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    pub name: String,
    pub address: SocketAddr,
}

impl std::str::FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "the form is NAME=ADDRESS:PORT, as in n1=10.1.0.1:9001".to_owned();
        let (name, address) = text.split_once('=').ok_or_else(form)?;
        let address = address.parse().map_err(|_| form())?;
        if name.is_empty() {
            return Err(form());
        }
        let name = name.to_owned();
        Ok(Self { name, address })
    }
}

impl Serve {
    /// Places in the list of peers: this node's and the leader's.
    pub fn places(&self) -> Result<(NodeId, NodeId), String> {
        let (names, protocol) = (self.names(), self.protocol);
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                return Err(format!("--peer names {name} twice"));
            }
        }
        let place = |option: &str, name: &str| {
            let place = names.iter().position(|known| *known == name);
            let known = || format!("{option} {name} is none of the peers {}", names.join(", "));
            place.map(|place| place as NodeId).ok_or_else(known)
        };
        let own = place("--name", &self.name)?;
        let leader = match &self.leader {
            Some(_) if protocol != Choice::Leader => {
                let wrong = format!("--leader has no meaning with --protocol {protocol}");
                return Err(wrong);
            }
            Some(leader) => place("--leader", leader)?,
            None => 0,
        };
        if self.defects.stale_reads && protocol == Choice::Leader {
            return Err("--stale-reads: with --protocol leader all reads are the leader's".into());
        }
        Ok((own, leader))
    }

    /// What all nodes of a cluster must have been told alike.
    pub fn cluster(&self, leader: NodeId) -> String {
        let names = self.names();
        let (protocol, max) = (self.protocol, self.max_object_bytes);
        let mut told = format!("{protocol} of {}, objects of {max} bytes", names.join(","));
        if protocol == Choice::Leader {
            told += &format!(", led by {}", names[leader as usize]);
        }
        let quorum = self.bob_quorum.map(|quorum| format!("quorum {quorum}"));
        let quorum = quorum.unwrap_or_else(|| "majorities".into());
        for Names(replicas) in &self.vdisks {
            told += &format!(", {quorum} of vdisk {}", replicas.join(","));
        }
        told
    }

    /// Where Bob's API is served and which nodes hold which blobs; None without `--bob`.
    pub fn placement(&self) -> Result<Option<(SocketAddr, Placement)>, String> {
        let Some(address) = self.bob else {
            return Ok(None);
        };
        let placement = Placement::new(&self.vdisks, self.bob_quorum, &self.names())?;
        Ok(Some((address, placement)))
    }

    fn names(&self) -> Vec<&str> {
        self.peers.iter().map(|peer| peer.name.as_str()).collect()
    }

    /// Where /healthz is served.
    pub fn health(&self) -> Result<SocketAddr, String> {
        let port = self.s3.port().checked_add(2);
        let port = port.ok_or("--s3 leaves no port two above for /healthz")?;
        Ok(SocketAddr::new(self.s3.ip(), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_peers(extra: &str) -> Serve {
        let fixed = "quorum serve --name n1 --data d --s3 10.1.0.1:9000 --peer-listen 10.1.0.1:9001 \
                     --access-key a --secret-key s --peer n1=10.1.0.1:9001 --peer n2=10.2.0.1:9001";
        let line = fixed.split_whitespace().chain(extra.split_whitespace());
        let Command::Serve(serve) = Cli::try_parse_from(line).unwrap().command;
        serve
    }

    #[test]
    fn the_first_peer_leads_unless_another_is_named() {
        let first = with_peers("--protocol leader");
        let named = with_peers("--protocol leader --leader n2");
        assert_eq!((first.places(), named.places()), (Ok((0, 0)), Ok((0, 1))));
        assert_eq!(first.health().unwrap(), "10.1.0.1:9002".parse().unwrap());
    }

    #[test]
    fn nodes_that_disagree_on_protocol_leader_or_members_are_of_different_clusters() {
        let one = with_peers("--protocol leader");
        let other = with_peers("--protocol rounds:2");
        assert_ne!(one.cluster(0), one.cluster(1));
        assert_ne!(one.cluster(0), other.cluster(0));
    }
}

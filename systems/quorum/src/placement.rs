//! Which nodes hold a blob: the vdisks, as Bob has them.

use crate::clock::{NodeId, Version};
use crate::record::BucketState;

/// Where blobs are kept. No bucket of S3 has a slash in its name, so S3 cannot ask for it.
pub const BUCKET: &str = "/bob";
/// It exists on every node from the start, so that no write is refused for want of it.
pub const BUCKET_STATE: BucketState = BucketState {
    created: Version::FIRST,
    deleted: Version::ZERO,
};

/// `NAME,NAME,...`: the nodes that hold a replica of a vdisk.
#[derive(Clone, Debug, PartialEq)]
pub struct Names(pub Vec<String>);

impl std::str::FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<_> = text.split(',').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err("the form is NAME,NAME,..., as in n1,n2,n3".into());
        }
        Ok(Self(names))
    }
}

/// One virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Vdisk {
    /// The nodes that hold a replica of it.
    pub nodes: Vec<NodeId>,
    /// How many of them must have a Put or a Delete on disk before it is acknowledged.
    pub quorum: usize,
}

impl Vdisk {
    /// How many replicas must have answered that they do not hold a blob before it is not there: so
    /// many that one of them has taken part in every acknowledged Put, and a majority at least.
    pub fn enough_to_deny(&self) -> usize {
        let count = self.nodes.len();
        (count - self.quorum + 1).max(majority(count))
    }
}

/// All vdisks, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement(Vec<Vdisk>);

impl Placement {
    /// `quorum` is that of every vdisk; without one, each waits for a majority of its replicas.
    ///
    /// # Errors
    /// One readable line, if the vdisks do not fit the nodes, or the quorum does not fit a vdisk.
    pub fn new(vdisks: &[Names], quorum: Option<usize>, known: &[&str]) -> Result<Self, String> {
        let vdisks = vdisks.iter().enumerate();
        let vdisks = vdisks.map(|(id, names)| vdisk(id, names, quorum, known));
        Ok(Self(vdisks.collect::<Result<_, _>>()?))
    }

    /// The vdisk whose number is the key, read as a little-endian integer, modulo their count.
    pub fn of(&self, key: [u8; 8]) -> &Vdisk {
        let id = u64::from_le_bytes(key) % self.0.len() as u64;
        &self.0[id as usize]
    }

    pub fn vdisks(&self) -> &[Vdisk] {
        &self.0
    }
}

fn vdisk(
    id: usize,
    Names(names): &Names,
    quorum: Option<usize>,
    known: &[&str],
) -> Result<Vdisk, String> {
    let mut nodes = vec![];
    for name in names {
        let node = known.iter().position(|known| known == name);
        let node = node.ok_or_else(|| {
            let known = known.join(", ");
            format!("--vdisk {id} names {name}, which is none of the peers {known}")
        })?;
        if nodes.contains(&(node as NodeId)) {
            return Err(format!("--vdisk {id} names {name} twice"));
        }
        nodes.push(node as NodeId);
    }
    let count = nodes.len();
    let quorum = quorum.unwrap_or_else(|| majority(count));
    if !(1..=count).contains(&quorum) {
        return Err(format!(
            "--bob-quorum {quorum} does not fit vdisk {id}, which has {count} replicas: \
             allowed are 1 to {count}"
        ));
    }
    Ok(Vdisk { nodes, quorum })
}

fn majority(count: usize) -> usize {
    count / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["n1", "n2", "n3", "n4"];

    fn placement(vdisks: &[&str], quorum: Option<usize>) -> Result<Placement, String> {
        let vdisks: Vec<_> = vdisks.iter().map(|names| names.parse().unwrap()).collect();
        Placement::new(&vdisks, quorum, &KNOWN)
    }

    #[test]
    fn a_key_is_a_little_endian_number_modulo_the_vdisks() {
        let placement = placement(&["n1", "n2", "n3"], None).unwrap();
        let first = |key| placement.of(key).nodes[0];
        assert_eq!(first([0; 8]), 0);
        assert_eq!(first([1, 0, 0, 0, 0, 0, 0, 0]), 1);
        assert_eq!(first([5, 0, 0, 0, 0, 0, 0, 0]), 2);
        // 256 is 1 modulo 3; 2^56 is 1 as well, twice that is 2.
        assert_eq!(first([0, 1, 0, 0, 0, 0, 0, 0]), 1);
        assert_eq!(first([0, 0, 0, 0, 0, 0, 0, 2]), 2);
    }

    #[test]
    fn the_quorum_is_a_majority_of_each_vdisk_unless_it_is_given() {
        let placement_of = |quorum| placement(&["n1", "n1,n2", "n1,n2,n3,n4"], quorum);
        let quorums = |placement: Placement| -> Vec<_> {
            let vdisks = placement.vdisks().iter();
            vdisks.map(|vdisk| vdisk.quorum).collect()
        };
        assert_eq!(quorums(placement_of(None).unwrap()), [1, 2, 3]);
        assert_eq!(quorums(placement_of(Some(1)).unwrap()), [1, 1, 1]);
    }

    #[test]
    fn those_who_deny_a_blob_share_a_replica_with_those_who_acknowledged_it() {
        for count in 1..=5 {
            for quorum in 1..=count {
                let nodes = (0..count as NodeId).collect();
                let enough = Vdisk { nodes, quorum }.enough_to_deny();
                assert!(enough + quorum > count && enough <= count);
                assert!(enough * 2 > count);
            }
        }
    }
}

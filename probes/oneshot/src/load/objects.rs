//! Which key and which bytes an object has: the same in every job with the same seed, and the same
//! in `probes/load.py`.

use sha2::{Digest, Sha256};

use crate::body;

/// The number of an object in a bucket, and the bucket's among those of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    pub bucket: u16,
    pub index: u64,
}

/// The objects of a job's buckets.
#[derive(Debug, Clone)]
pub struct Objects {
    pub buckets: Vec<String>,
    /// Of each bucket: the seed of its keys and that of its bodies.
    seeds: Vec<(u64, u64)>,
    pub bytes: u64,
}

impl Objects {
    pub fn new(seed: u64, buckets: &[String], bytes: u64) -> Self {
        let of = |what: &str, bucket: &str| {
            let digest = Sha256::digest(format!("{seed}/{bucket}/{what}"));
            u64::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
        };
        let seeds = |bucket: &String| (of("keys", bucket), of("bodies", bucket));
        Objects {
            buckets: buckets.to_vec(),
            seeds: buckets.iter().map(seeds).collect(),
            bytes,
        }
    }

    /// The seed of its bytes. 53 bits, which any JSON carries.
    pub fn body_seed(&self, object: Object) -> u64 {
        u64::from_le_bytes(word(self.seeds[object.bucket as usize].1, object.index)) >> 11
    }

    /// Its key in Bob: no two of a bucket are alike, because SplitMix64 is a bijection.
    pub fn bob_key(&self, object: Object) -> [u8; 8] {
        word(self.seeds[object.bucket as usize].0, object.index)
    }

    /// The path of its URL in S3.
    pub fn path(&self, object: Object, into: &mut Vec<u8>) {
        use std::io::Write;
        let bucket = &self.buckets[object.bucket as usize];
        let _ = write!(into, "/{bucket}/fill-{:08}", object.index);
    }
}

fn word(seed: u64, index: u64) -> [u8; 8] {
    let mut word = [0; 8];
    body::fill(seed, index, &mut word);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_bodies_are_those_that_python_makes() {
        // probes/load.py: key_of(7, "b1", 17, "bob"), body_seed_of(7, "b1", 17).
        let objects = Objects::new(7, &["b0".into(), "b1".into()], 1);
        let object = Object {
            bucket: 1,
            index: 17,
        };
        let mut path = Vec::new();
        objects.path(object, &mut path);
        assert_eq!(path, b"/b1/fill-00000017");
        let hex: String = objects
            .bob_key(object)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hex, "4d7153729859a30c");
        assert_eq!(objects.body_seed(object), 6_218_993_710_871_038);
    }
}

//! Which key and which bytes an object has: the same in every job with the same seed, and the same
//! in `probes/prefilled.py`.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::body::{self, hex};
use crate::load::deed::Deed;
use crate::plan::Request;

/// How a store is asked to do one thing to an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// What records call it.
    pub name: String,
    /// The request, but for key and bytes: bucket, length and seed are put where it has any.
    pub request: Request,
}

/// The number of an object in a bucket, and the bucket's among those of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    pub bucket: u16,
    pub index: u64,
}

/// The objects of a job's buckets.
#[derive(Debug, Clone)]
pub struct Objects {
    operations: BTreeMap<Deed, Operation>,
    buckets: Vec<String>,
    /// Of each bucket: the seed of its keys and that of its bodies.
    seeds: Vec<(u64, u64)>,
    bytes: u64,
}

impl Objects {
    pub fn new(
        operations: &BTreeMap<Deed, Operation>,
        seed: u64,
        buckets: &[String],
        bytes: u64,
    ) -> Self {
        let of = |what: &str, bucket: &str| {
            let digest = Sha256::digest(format!("{seed}/{bucket}/{what}"));
            u64::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
        };
        let seeds = |bucket: &String| (of("keys", bucket), of("bodies", bucket));
        Objects {
            operations: operations.clone(),
            buckets: buckets.to_vec(),
            seeds: buckets.iter().map(seeds).collect(),
            bytes,
        }
    }

    /// What records call a request that does this.
    pub fn name(&self, deed: Deed) -> &str {
        &self.operations[&deed].name
    }

    /// The request that does this to an object.
    pub fn request(&self, deed: Deed, object: Object) -> Request {
        let (keys, bodies) = self.seeds[usize::from(object.bucket)];
        let blank = &self.operations[&deed].request;
        let key = if blank.bucket.is_some() {
            format!("fill-{:08}", object.index)
        } else {
            // No two of a bucket are alike, because SplitMix64 is a bijection.
            hex(&word(keys, object.index))
        };
        // 53 bits, which any JSON carries.
        let body_seed = u64::from_le_bytes(word(bodies, object.index)) >> 11;
        let bucket = &self.buckets[usize::from(object.bucket)];
        Request {
            bucket: blank.bucket.as_ref().map(|_| bucket.clone()),
            key: Some(key),
            object_bytes: blank.object_bytes.map(|_| self.bytes),
            body_seed: blank.body_seed.map(|_| body_seed),
            ..blank.clone()
        }
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
        // probes/prefilled.py: key_of(7, "b1", 17, …), body_seed_of(7, "b1", 17).
        let object = Object {
            bucket: 1,
            index: 17,
        };
        for (blank, bucket, key) in [
            (Some(String::new()), Some("b1"), "fill-00000017"),
            (None, None, "4d7153729859a30c"),
        ] {
            let request = Request {
                endpoint: "Read".into(),
                bucket: blank,
                object_bytes: Some(0),
                body_seed: Some(0),
                ..Request::default()
            };
            let name = "Read".into();
            let operations = BTreeMap::from([(Deed::Get, Operation { name, request })]);
            let objects = Objects::new(&operations, 7, &["b0".into(), "b1".into()], 1);
            let request = objects.request(Deed::Get, object);
            assert_eq!(request.object_bytes, Some(1));
            assert_eq!(request.bucket.as_deref(), bucket);
            assert_eq!(request.key.as_deref(), Some(key));
            assert_eq!(request.body_seed, Some(6_218_993_710_871_038));
        }
    }
}

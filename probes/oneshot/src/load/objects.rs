//! Which key and which bytes an object has: the same in every job with the same seed, and the same
//! in `probes/load.py`.

use sha2::{Digest, Sha256};

use crate::body::{self, hex};
use crate::load::deed::{Api, Deed};
use crate::plan::Request;

/// The number of an object in a bucket, and the bucket's among those of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    pub bucket: u16,
    pub index: u64,
}

/// The objects of a job's buckets.
#[derive(Debug, Clone)]
pub struct Objects {
    api: Api,
    buckets: Vec<String>,
    /// Of each bucket: the seed of its keys and that of its bodies.
    seeds: Vec<(u64, u64)>,
    bytes: u64,
}

impl Objects {
    pub fn new(api: Api, seed: u64, buckets: &[String], bytes: u64) -> Self {
        let of = |what: &str, bucket: &str| {
            let digest = Sha256::digest(format!("{seed}/{bucket}/{what}"));
            u64::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
        };
        let seeds = |bucket: &String| (of("keys", bucket), of("bodies", bucket));
        Objects {
            api,
            buckets: buckets.to_vec(),
            seeds: buckets.iter().map(seeds).collect(),
            bytes,
        }
    }

    /// The request that does this to an object.
    pub fn request(&self, deed: Deed, object: Object) -> Request {
        let (keys, bodies) = self.seeds[usize::from(object.bucket)];
        let is_s3 = self.api == Api::S3;
        let key = match self.api {
            Api::S3 => format!("fill-{:08}", object.index),
            // No two of a bucket are alike, because SplitMix64 is a bijection.
            Api::Bob => hex(&word(keys, object.index)),
        };
        // 53 bits, which any JSON carries.
        let body_seed = u64::from_le_bytes(word(bodies, object.index)) >> 11;
        let moves = matches!(deed, Deed::Get | Deed::Put);
        let sizes = moves || (is_s3 && deed == Deed::Head);
        Request {
            endpoint: self.api.name(deed).into(),
            bucket: is_s3.then(|| self.buckets[usize::from(object.bucket)].clone()),
            key: Some(key),
            object_bytes: sizes.then_some(self.bytes),
            body_seed: moves.then_some(body_seed),
            ..Request::default()
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
        // probes/load.py: key_of(7, "b1", 17, …), body_seed_of(7, "b1", 17).
        let object = Object {
            bucket: 1,
            index: 17,
        };
        for (api, bucket, key) in [
            (Api::S3, Some("b1"), "fill-00000017"),
            (Api::Bob, None, "4d7153729859a30c"),
        ] {
            let objects = Objects::new(api, 7, &["b0".into(), "b1".into()], 1);
            let request = objects.request(Deed::Get, object);
            assert_eq!(request.bucket.as_deref(), bucket);
            assert_eq!(request.key.as_deref(), Some(key));
            assert_eq!(request.body_seed, Some(6_218_993_710_871_038));
        }
    }
}

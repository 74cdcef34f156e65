//! What a replica keeps: one record an object, one state a bucket.

use serde::{Deserialize, Serialize};

use crate::clock::Version;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectName {
    pub bucket: String,
    pub key: String,
}

/// The latest value of an object, or the tombstone that says it was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub version: Version,
    /// When the bucket that the object was written into had been created. A record whose bucket was
    /// deleted after that is not visible, even where a replica missed the deletion.
    pub incarnation: Version,
    /// None: a tombstone.
    pub object: Option<Meta>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub size: u64,
    pub md5: [u8; 16],
    /// CRC-32 (ISO-HDLC) of the body, checked whenever it is read from disk.
    pub crc32: u32,
    pub content_type: Option<String>,
    /// `x-amz-meta-*`
    pub user: Vec<(String, String)>,
}

pub fn crc32(data: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, data) as u32
}

/// A bucket's latest creation and latest deletion. Merging takes the greater of each, so that
/// replicas agree in whatever order they hear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketState {
    pub created: Version,
    pub deleted: Version,
}

impl BucketState {
    pub fn alive(self) -> bool {
        self.created > self.deleted
    }

    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            created: self.created.max(other.created),
            deleted: self.deleted.max(other.deleted),
        }
    }

    /// Whether an object that was written into `incarnation` of the bucket still counts.
    pub fn shows(self, incarnation: Version) -> bool {
        self.alive() && incarnation > self.deleted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bucket;

    #[test]
    fn buckets_merge_alike_in_any_order() {
        let heard = [bucket(1, 0), bucket(0, 2), bucket(3, 0)];
        let forwards = heard.into_iter().reduce(BucketState::merge).unwrap();
        let backwards = heard.into_iter().rev().reduce(BucketState::merge).unwrap();
        assert_eq!(forwards, backwards);
        assert!(forwards.alive());
    }

    #[test]
    fn a_bucket_shows_what_was_written_since_it_was_created_last() {
        let (again, deleted) = (bucket(3, 2), bucket(1, 2));
        assert!(!again.shows(Version::of(1, 0)));
        assert!(again.shows(Version::of(3, 0)));
        assert!(!deleted.shows(Version::of(3, 0)));
    }

    #[test]
    fn the_crc_is_the_one_of_zip_and_ethernet() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}

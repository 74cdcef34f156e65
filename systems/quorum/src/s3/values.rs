//! Values of S3, made of those of the store.

use s3s::dto::{ETag, Timestamp};

use crate::clock::Version;

pub fn etag(md5: &[u8; 16]) -> ETag {
    ETag::Strong(md5.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub fn modified(version: Version) -> Timestamp {
    version.wall_time().into()
}

//! What unit tests share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::Version;
use crate::record::{BucketState, Meta, ObjectName, Record, crc32};

/// A directory of its own, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorum-unit-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("the temporary directory is writable");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Of an object in the bucket `b`.
pub fn name(key: &str) -> ObjectName {
    ObjectName {
        bucket: "b".into(),
        key: key.into(),
    }
}

/// A bucket by the times of its creation and deletion.
pub fn bucket(created: u64, deleted: u64) -> BucketState {
    BucketState {
        created: Version::of(created, 0),
        deleted: Version::of(deleted, 0),
    }
}

pub fn meta(body: &[u8]) -> Meta {
    Meta {
        size: body.len() as u64,
        md5: [0; 16],
        crc32: crc32(body),
        content_type: None,
        user: vec![],
    }
}

/// A record of this body or, with None, a tombstone.
pub fn record(time: u64, body: Option<&[u8]>) -> Record {
    Record {
        version: Version::of(time, 0),
        incarnation: Version::of(1, 0),
        object: body.map(meta),
    }
}

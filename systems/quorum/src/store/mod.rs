//! One replica on disk: a file an entry, an index of all entries in memory.
//!
//! A file an entry, and not an embedded database or a log: the space of a replaced or removed object
//! is free at once without compaction, a full disk fails one write and heals by itself, bodies of
//! 100 MB are nothing special, and every file can be looked at. A name is never used twice and never
//! renamed, so that syncing the file carries its directory entry along (ext4, XFS) and the sync of
//! the directory that follows, which POSIX asks for, finds nothing left to do.

mod files;
mod format;
mod page;
mod record;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;

use self::files::{FileId, Files};
use self::format::Header;
#[cfg(test)]
pub use self::page::Summary;
pub use self::page::{After, Listed, Page, Query};
pub use self::record::{BucketState, Meta, ObjectName, Record, crc32};
use crate::clock::Version;

pub struct Store {
    files: Files,
    index: Mutex<Index>,
}

type Index = BTreeMap<String, Bucket>;

#[derive(Default)]
struct Bucket {
    state: BucketState,
    file: Option<FileId>,
    objects: BTreeMap<String, Stored>,
}

struct Stored {
    record: Record,
    file: FileId,
}

impl AsRef<Record> for Stored {
    fn as_ref(&self) -> &Record {
        &self.record
    }
}

impl Store {
    /// Opens the replica in `directory`, which is made if it does not exist.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let (files, found) = Files::open(directory)?;
        let store = Self {
            files,
            index: Mutex::default(),
        };
        for (file, header) in found {
            store.admit(header, file);
        }
        Ok(store)
    }

    /// The greatest version held, from which the clock goes on after a restart.
    pub fn newest_version(&self) -> Version {
        let index = self.index();
        let of_bucket = |bucket: &Bucket| {
            let records = bucket.objects.values().map(|stored| stored.record.version);
            let state = [bucket.state.created, bucket.state.deleted];
            records.chain(state).max()
        };
        let newest = index.values().filter_map(of_bucket).max();
        newest.unwrap_or_default()
    }

    pub fn buckets(&self) -> Vec<(String, BucketState)> {
        let index = self.index();
        let states = index
            .iter()
            .map(|(name, bucket)| (name.clone(), bucket.state));
        states.collect()
    }

    pub fn bucket(&self, name: &str) -> BucketState {
        let index = self.index();
        index
            .get(name)
            .map(|bucket| bucket.state)
            .unwrap_or_default()
    }

    /// Learns of a bucket's state. It is on disk when this returns.
    pub fn merge_bucket(&self, name: &str, state: BucketState) -> io::Result<()> {
        let known = self.bucket(name);
        let state = known.merge(state);
        if state == known {
            return Ok(());
        }
        self.persist(
            Header::Bucket {
                name: name.to_owned(),
                state,
            },
            &[],
        )
    }

    pub fn record(&self, name: &ObjectName) -> Option<Record> {
        let index = self.index();
        let stored = index.get(&name.bucket)?.objects.get(&name.key)?;
        Some(stored.record.clone())
    }

    /// The latest record with its body (empty for a tombstone), read from disk.
    pub fn read(&self, name: &ObjectName) -> io::Result<Option<(Record, Bytes)>> {
        loop {
            let Some((record, file)) = self.locate(name) else {
                return Ok(None);
            };
            let Some(meta) = &record.object else {
                return Ok(Some((record, Bytes::new())));
            };
            match self.files.body(file, meta) {
                Ok(body) => return Ok(Some((record, body))),
                // A newer version took its place in the meantime.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && self.locate(name).map(|(_, file)| file) != Some(file) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps a record unless one at least as new is there. It, or the newer one, is on disk when
    /// this returns.
    pub fn write(&self, name: &ObjectName, record: Record, body: &[u8]) -> io::Result<()> {
        if let Some((known, _)) = self.locate(name)
            && known.version >= record.version
        {
            return Ok(());
        }
        let name = name.clone();
        self.persist(Header::Object { name, record }, body)
    }

    pub fn page(&self, bucket: &str, query: &Query) -> Page {
        let index = self.index();
        index
            .get(bucket)
            .map(|bucket| Page::collect(&bucket.objects, bucket.state, query))
            .unwrap_or_default()
    }

    /// Objects that are neither removed nor in a deleted bucket.
    pub fn object_count(&self) -> usize {
        let index = self.index();
        let of_bucket = |bucket: &Bucket| {
            let visible = |stored: &&Stored| {
                let record = &stored.record;
                record.object.is_some() && bucket.state.shows(record.incarnation)
            };
            bucket.objects.values().filter(visible).count()
        };
        index.values().map(of_bucket).sum()
    }

    fn locate(&self, name: &ObjectName) -> Option<(Record, FileId)> {
        let index = self.index();
        let stored = index.get(&name.bucket)?.objects.get(&name.key)?;
        Some((stored.record.clone(), stored.file))
    }

    fn persist(&self, header: Header, body: &[u8]) -> io::Result<()> {
        let file = self.files.create(&header, body)?;
        self.admit(header, file);
        Ok(())
    }

    /// Enters what is on disk into the index, and deletes the file that it makes needless. Entries
    /// may come in any order.
    fn admit(&self, header: Header, file: FileId) {
        let needless = match header {
            Header::Bucket { name, state } => {
                let mut index = self.index();
                let bucket = index.entry(name).or_default();
                let merged = bucket.state.merge(state);
                if merged == state {
                    bucket.state = merged;
                    bucket.file.replace(file)
                } else if merged == bucket.state {
                    Some(file)
                } else {
                    // Neither file says all: two writers met. Both stay; the next change ends it.
                    bucket.state = merged;
                    None
                }
            }
            Header::Object { name, record } => {
                let mut index = self.index();
                let objects = &mut index.entry(name.bucket).or_default().objects;
                match objects.get(&name.key) {
                    Some(known) if known.record.version >= record.version => Some(file),
                    _ => objects
                        .insert(name.key, Stored { record, file })
                        .map(|old| old.file),
                }
            }
        };
        if let Some(file) = needless {
            self.files.remove(file);
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index
            .lock()
            .expect("no holder of the index lock panics")
    }
}

#[cfg(test)]
mod tests;

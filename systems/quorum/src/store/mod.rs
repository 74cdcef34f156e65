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

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::files::{FileId, Files};
use self::format::Header;
#[cfg(test)]
pub use self::page::Summary;
pub use self::page::{Listed, Page, Query};
use crate::clock::Version;
use crate::defects::Flags;
use crate::log::say;
use crate::record::{BucketState, ObjectName, Record};

pub struct Store {
    files: Files,
    index: Mutex<Index>,
    defects: Flags,
    /// Planted defect: what is acknowledged and not on disk yet.
    unflushed: Mutex<VecDeque<(Instant, Header, Bytes)>>,
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
    place: Place,
}

/// Where a record is kept.
#[derive(Clone)]
enum Place {
    File(FileId),
    /// Planted defect: nowhere but here, with its body.
    Memory(Bytes),
    /// Planted defect: a tombstone that is nowhere but here; the file of what was removed is still
    /// there, and found when the store is opened again.
    Over(Option<FileId>),
}

impl Place {
    /// The file that is needless once something newer is kept.
    fn file(&self) -> Option<FileId> {
        match self {
            Self::File(file) => Some(*file),
            Self::Memory(_) => None,
            Self::Over(file) => *file,
        }
    }
}

impl AsRef<Record> for Stored {
    fn as_ref(&self) -> &Record {
        &self.record
    }
}

impl Store {
    /// Opens the replica in `directory`, which is made if it does not exist, with the defects planted
    /// that are the store's own.
    pub fn open(directory: &Path, defects: Flags) -> io::Result<Self> {
        let (files, found) = Files::open(directory)?;
        let store = Self {
            files,
            index: Mutex::default(),
            defects,
            unflushed: Mutex::default(),
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
            let Some((record, place)) = self.locate(name) else {
                return Ok(None);
            };
            let Some(meta) = &record.object else {
                return Ok(Some((record, Bytes::new())));
            };
            let file = match place {
                Place::File(file) => file,
                Place::Memory(body) => return Ok(Some((record, body))),
                Place::Over(_) => unreachable!("it holds tombstones only"),
            };
            match self.files.body(file, meta) {
                Ok(body) => return Ok(Some((record, body))),
                // A newer version took its place in the meantime.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && self.locate(name).and_then(|(_, place)| place.file()) != Some(file) => {}
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
        if self.defects.resurrect && record.object.is_none() {
            self.keep(name, record, Place::Over(None));
            return Ok(());
        }
        if self.defects.lose_acked {
            let body = Bytes::copy_from_slice(body);
            self.keep(name.clone(), record.clone(), Place::Memory(body.clone()));
            let late = (Instant::now(), Header::Object { name, record }, body);
            lock(&self.unflushed).push_back(late);
            return Ok(());
        }
        self.persist(Header::Object { name, record }, body)
    }

    /// Planted defect: writes what was acknowledged so much later, from a thread of its own.
    pub fn flush_late(self: &Arc<Self>, by: Duration) {
        let store = Arc::downgrade(self);
        thread::spawn(move || {
            while let Some(store) = store.upgrade() {
                store.flush_older_than(by);
                drop(store);
                thread::sleep(by / 100);
            }
        });
    }

    fn flush_older_than(&self, age: Duration) {
        loop {
            let mut unflushed = lock(&self.unflushed);
            let early = |(at, ..): &(Instant, _, _)| at.elapsed() < age;
            if unflushed.front().is_none_or(early) {
                return;
            }
            let (_, header, body) = unflushed.pop_front().expect("it was just looked at");
            drop(unflushed);
            if let Err(error) = self.persist(header, &body) {
                say(format_args!("cannot write what was acknowledged: {error}"));
            }
        }
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

    fn locate(&self, name: &ObjectName) -> Option<(Record, Place)> {
        let index = self.index();
        let stored = index.get(&name.bucket)?.objects.get(&name.key)?;
        Some((stored.record.clone(), stored.place.clone()))
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
                return self.keep(name, record, Place::File(file));
            }
        };
        if let Some(file) = needless {
            self.files.remove(file);
        }
    }

    /// Enters a record into the index, unless a newer one is there. What loses its file goes.
    fn keep(&self, name: ObjectName, record: Record, place: Place) {
        let mut index = self.index();
        let objects = &mut index.entry(name.bucket).or_default().objects;
        let known = objects.get(&name.key);
        // What was in memory alone is on disk now.
        let flushed = |known: &Stored| matches!(known.place, Place::Memory(_));
        let needless = match known {
            Some(known)
                if known.record.version > record.version
                    || (known.record.version == record.version && !flushed(known)) =>
            {
                place.file()
            }
            known => {
                let replaced = known.and_then(|known| known.place.file());
                let (place, needless) = match place {
                    Place::Over(_) => (Place::Over(replaced), None),
                    place => (place, replaced),
                };
                objects.insert(name.key, Stored { record, place });
                needless
            }
        };
        drop(index);
        if let Some(file) = needless {
            self.files.remove(file);
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.index)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of a store's lock panics")
}

#[cfg(test)]
mod tests;

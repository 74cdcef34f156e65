//! The files of a replica: numbered, written once, synced before anything refers to them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::format::{self, Header};
use crate::log::say;
use crate::record::Meta;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64);

pub struct Files {
    directory: PathBuf,
    /// The same, open: to sync entries made and removed.
    handle: File,
    /// Held locked, so that two processes never share a replica.
    _lock: File,
    next: AtomicU64,
}

impl Files {
    /// Opens the directory and reads the header of every whole file in it. Others are removed: the
    /// process died before they were acknowledged.
    pub fn open(root: &Path) -> io::Result<(Self, Vec<(FileId, Header)>)> {
        let directory = root.join("entries");
        fs::create_dir_all(&directory)?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).append(true).open(root.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another process uses it"),
            TryLockError::Error(error) => error,
        })?;
        File::open(root)?.sync_all()?;

        let mut found = Vec::new();
        let mut next = 0;
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            // Names that `path` makes: what is called otherwise is another's, and stays.
            let Some(id) = name
                .filter(|name| name.len() == 16)
                .and_then(|name| u64::from_str_radix(name, 16).ok())
            else {
                continue;
            };
            next = next.max(id + 1);
            match format::read_header(&File::open(&path)?)? {
                Some((header, _)) => found.push((FileId(id), header)),
                None => fs::remove_file(&path)?,
            }
        }
        let files = Self {
            handle: File::open(&directory)?,
            directory,
            _lock: lock,
            next: AtomicU64::new(next),
        };
        Ok((files, found))
    }

    /// Writes a new file; it is on disk when this returns. Of one that failed nothing stays.
    pub fn create(&self, header: &Header, body: &[u8]) -> io::Result<FileId> {
        let id = FileId(self.next.fetch_add(1, Ordering::Relaxed));
        let path = self.path(id);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        let written = format::write(&file, header, body)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.handle.sync_all());
        match written {
            Ok(()) => Ok(id),
            Err(error) => {
                self.remove(id);
                Err(error)
            }
        }
    }

    pub fn body(&self, id: FileId, meta: &Meta) -> io::Result<Bytes> {
        let file = File::open(self.path(id))?;
        let (_, body_at) = format::read_header(&file)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an entry is damaged"))?;
        format::read_body(&file, body_at, meta.size, meta.crc32)
    }

    /// Removes a file that nothing refers to any more. Not synced: should it come back after a
    /// power cut, the newer entry that replaced it is there too and wins.
    pub fn remove(&self, id: FileId) {
        let path = self.path(id);
        if let Err(error) = fs::remove_file(&path) {
            say(format_args!("cannot remove {}: {error}", path.display()));
        }
    }

    fn path(&self, id: FileId) -> PathBuf {
        self.directory.join(format!("{:016x}", id.0))
    }
}

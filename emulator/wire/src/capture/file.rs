//! A file of whole blocks: it stops growing at its limit or where the disk is full, and never
//! ends within a block.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Blocks are collected up to this many bytes before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// The file.
pub(super) struct BlockFile {
    file: File,
    /// Length of the file; always at the end of a block.
    written: u64,
    /// Whole blocks that are still to be written.
    buffer: Vec<u8>,
    limit: u64,
}

/// Why a file takes no more blocks.
#[derive(Debug)]
pub(super) enum Full {
    /// The limit.
    Limit,
    /// The system refused. The packets of these interfaces had been taken and are not in the file.
    Refused(io::Error, Vec<u32>),
}

impl BlockFile {
    /// Opens and empties a file that may grow to `limit` bytes.
    pub(super) fn open(path: &Path, limit: u64) -> io::Result<BlockFile> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(0)?;
        Ok(BlockFile {
            file,
            written: 0,
            buffer: Vec::with_capacity(2 * WRITE_BYTES),
            limit,
        })
    }

    /// Length of the file with all that was taken.
    pub(super) fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Takes one block.
    pub(super) fn take(&mut self, block: &[u8]) -> Result<(), Full> {
        if self.length() + block.len() as u64 > self.limit {
            return Err(Full::Limit);
        }
        self.buffer.extend_from_slice(block);
        if self.buffer.len() >= WRITE_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Lets the file grow to `limit` bytes from now on.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Writes what was taken.
    pub(super) fn flush(&mut self) -> Result<(), Full> {
        let mut done = 0;
        let result = loop {
            if done == self.buffer.len() {
                break Ok(());
            }
            match self.file.write(&self.buffer[done..]) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(length) => done += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        match result {
            Ok(()) => {
                self.written += done as u64;
                self.buffer.clear();
                Ok(())
            }
            Err(error) => Err(self.cut(done, error)),
        }
    }

    /// Cuts what got into the file back to whole blocks.
    fn cut(&mut self, done: usize, error: io::Error) -> Full {
        let (mut at, mut whole, mut lost) = (0, 0, Vec::new());
        while let Some((length, interface)) = block_at(&self.buffer[at..]) {
            at += length;
            if at <= done {
                whole = at;
            } else {
                lost.extend(interface);
            }
        }
        self.written += whole as u64;
        let cut = self.file.set_len(self.written);
        self.buffer.clear();
        Full::Refused(cut.err().unwrap_or(error), lost)
    }
}

/// Length of the block at the start of `bytes`, and its interface if it is a packet.
fn block_at(bytes: &[u8]) -> Option<(usize, Option<u32>)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = word(4)? as usize;
    let is_packet = word(0)? == super::pcapng::ENHANCED_PACKET;
    (length >= 12).then_some((length, if is_packet { word(8) } else { None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(length: u32) -> Vec<u8> {
        let mut block = vec![0; length as usize];
        block[..4].copy_from_slice(&super::super::pcapng::ENHANCED_PACKET.to_le_bytes());
        block[4..8].copy_from_slice(&length.to_le_bytes());
        block
    }

    fn path(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("wire-{}-{name}", std::process::id()));
        File::create(&path).unwrap();
        path
    }

    #[test]
    fn the_limit_is_kept_to_the_byte() {
        let path = path("limit");
        let mut file = BlockFile::open(&path, 100).unwrap();
        assert!(file.take(&block(60)).is_ok());
        assert!(matches!(file.take(&block(44)), Err(Full::Limit)));
        assert!(file.take(&block(40)).is_ok());
        file.flush().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_a_full_disk_took_of_a_block_is_cut_off_again() {
        let path = path("cut");
        let mut file = BlockFile::open(&path, 1 << 20).unwrap();
        for _ in 0..3 {
            file.take(&block(100)).unwrap();
        }
        // As if the disk had taken 250 of 300 bytes.
        file.file.write_all(&[1; 250]).unwrap();
        let full = file.cut(250, io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(matches!(full, Full::Refused(_, lost) if lost == [0]));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 200);
        assert_eq!(file.length(), 200);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_device_is_told() {
        let mut file = BlockFile {
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            written: 0,
            buffer: Vec::new(),
            limit: u64::MAX,
        };
        file.take(&block(100)).unwrap();
        assert!(matches!(file.flush(), Err(Full::Refused(_, lost)) if lost == [0]));
    }
}

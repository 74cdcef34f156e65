//! The two files of a record, which have the same packets: they stop growing at their limit or
//! where the disk is full, and never end within a packet.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Packets are collected up to this many bytes before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// Why the files take no more packets.
#[derive(Debug)]
pub(super) enum Full {
    /// The limit.
    Limit,
    /// The system refused. Packets of these interfaces had been taken and are not in the files.
    Refused(io::Error, Vec<u32>),
}

/// Both files.
pub(super) struct Files {
    pcapng: Part,
    rows: Part,
    /// Packets that are still to be written, in their order.
    unwritten: Vec<Unwritten>,
    limit: u64,
}

struct Unwritten {
    interface: u32,
    /// Where it ends in the buffers of both files.
    pcapng_end: usize,
    row_end: usize,
}

impl Files {
    /// Opens and empties both files, which together may grow to `limit` bytes.
    pub(super) fn open(pcapng: &Path, rows: &Path, limit: u64) -> Result<Files, String> {
        Ok(Files {
            pcapng: Part::open(pcapng)?,
            rows: Part::open(rows)?,
            unwritten: Vec::new(),
            limit,
        })
    }

    /// Length of the files with all that was taken.
    pub(super) fn length(&self) -> u64 {
        self.pcapng.length() + self.rows.length()
    }

    /// Lets the files grow to `limit` bytes from now on.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Takes what belongs to no packet: heads, statistics.
    pub(super) fn take(&mut self, pcapng: &[u8], rows: &[u8]) -> Result<(), Full> {
        if self.length() + (pcapng.len() + rows.len()) as u64 > self.limit {
            return Err(Full::Limit);
        }
        self.pcapng.buffer.extend_from_slice(pcapng);
        self.rows.buffer.extend_from_slice(rows);
        Ok(())
    }

    /// Takes a packet.
    pub(super) fn take_packet(
        &mut self,
        interface: u32,
        block: &[u8],
        row: &[u8],
    ) -> Result<(), Full> {
        self.take(block, row)?;
        self.unwritten.push(Unwritten {
            interface,
            pcapng_end: self.pcapng.buffer.len(),
            row_end: self.rows.buffer.len(),
        });
        if self.pcapng.buffer.len() >= WRITE_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Writes what was taken. Where that cannot be done, both files are cut back to the packets
    /// that are whole in both.
    pub(super) fn flush(&mut self) -> Result<(), Full> {
        let (pcapng_done, pcapng_error) = self.pcapng.write();
        let (rows_done, rows_error) = self.rows.write();
        let Some(error) = pcapng_error.or(rows_error) else {
            self.pcapng.keep(pcapng_done);
            self.rows.keep(rows_done);
            self.unwritten.clear();
            return Ok(());
        };
        let is_whole =
            |each: &Unwritten| each.pcapng_end <= pcapng_done && each.row_end <= rows_done;
        let whole = self.unwritten.partition_point(is_whole);
        let last = self.unwritten[..whole].last();
        let (pcapng_end, row_end) = last.map_or((0, 0), |each| (each.pcapng_end, each.row_end));
        self.pcapng.keep(pcapng_end);
        self.rows.keep(row_end);
        let cut = self.pcapng.cut().and(self.rows.cut());
        let lost = self.unwritten.drain(..).skip(whole);
        Err(Full::Refused(
            cut.err().unwrap_or(error),
            lost.map(|each| each.interface).collect(),
        ))
    }
}

/// One file, and what is still to be written to it.
struct Part {
    file: File,
    /// Length of what is whole in the file.
    written: u64,
    buffer: Vec<u8>,
}

impl Part {
    /// What is written goes to the end of the file, also after it was cut.
    fn open(path: &Path) -> Result<Part, String> {
        let opened = OpenOptions::new().append(true).open(path);
        let emptied = opened.and_then(|file| file.set_len(0).map(|()| file));
        Ok(Part {
            file: emptied.map_err(|error| format!("{}: {error}", path.display()))?,
            written: 0,
            buffer: Vec::with_capacity(2 * WRITE_BYTES),
        })
    }

    fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes the buffer. Returns how much of it is in the file now, and why not all of it.
    fn write(&mut self) -> (usize, Option<io::Error>) {
        let mut done = 0;
        while done < self.buffer.len() {
            match self.file.write(&self.buffer[done..]) {
                Ok(0) => return (done, Some(io::ErrorKind::WriteZero.into())),
                Ok(length) => done += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (done, Some(error)),
            }
        }
        (done, None)
    }

    /// Takes so much of the buffer for written, and forgets the rest.
    fn keep(&mut self, done: usize) {
        self.written += done as u64;
        self.buffer.clear();
    }

    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.written)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// Two new files, and what to remove them with.
    fn paths(name: &str) -> (PathBuf, PathBuf) {
        let base = std::env::temp_dir().join(format!("wire-{}-{name}", std::process::id()));
        let paths = (base.with_extension("pcapng"), base.with_extension("rows"));
        File::create(&paths.0).unwrap();
        File::create(&paths.1).unwrap();
        paths
    }

    #[test]
    fn the_limit_is_kept_to_the_byte() {
        let (pcapng, rows) = paths("limit");
        let mut files = Files::open(&pcapng, &rows, 100).unwrap();
        assert!(files.take_packet(0, &[1; 50], &[1; 10]).is_ok());
        let refused = files.take_packet(0, &[2; 31], &[2; 10]);
        assert!(matches!(refused, Err(Full::Limit)));
        assert!(files.take_packet(0, &[3; 30], &[3; 10]).is_ok());
        files.flush().unwrap();
        assert_eq!(files.length(), 100);
        assert_eq!(
            fs::read(&pcapng).unwrap(),
            [[1; 50].as_slice(), &[3; 30]].concat()
        );
        assert_eq!(fs::read(&rows).unwrap(), [[1; 10], [3; 10]].concat());
        fs::remove_file(pcapng).unwrap();
        fs::remove_file(rows).unwrap();
    }

    #[test]
    fn a_full_disk_leaves_the_same_whole_packets_in_both_files_and_what_follows_fits_on() {
        let (pcapng, rows) = paths("cut");
        let mut files = Files::open(&pcapng, &rows, 1 << 20).unwrap();
        files.take_packet(0, &[1; 100], &[1; 10]).unwrap();
        files.flush().unwrap();
        for interface in 1..4 {
            files.take_packet(interface, &[2; 100], &[2; 10]).unwrap();
        }
        // The rows have room for nothing, and half of the blocks are in their file already.
        let writable = std::mem::replace(&mut files.rows.file, File::open("/dev/full").unwrap());
        let Err(Full::Refused(_, lost)) = files.flush() else {
            panic!("there is room");
        };
        assert_eq!(lost, [1, 2, 3]);
        files.rows.file = writable;
        files.take(&[9; 4], &[]).unwrap();
        files.flush().unwrap();
        assert_eq!(
            fs::read(&pcapng).unwrap(),
            [[1; 100].as_slice(), &[9; 4]].concat()
        );
        assert_eq!(fs::read(&rows).unwrap(), [1; 10]);
        fs::remove_file(pcapng).unwrap();
        fs::remove_file(rows).unwrap();
    }
}

//! A request's record: 72 bytes, little-endian, and a file of them.
//!
//! The file begins with a record's length of header. Endpoints and kinds of errors are numbers in a
//! record; one whose endpoint is 254 or 255 gives such a number its name, before the first that uses
//! it. So a file whose writer was killed can be read as far as it goes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use crate::load::deed::Deed;
use crate::outcome::Outcome;

pub const BYTES: usize = 72;
const MAGIC: &[u8; 16] = b"wanlat load 1\n\0\0";
const ENDPOINT_NAME: u8 = 254;
const NAME: u8 = 255;
const NAME_BYTES: usize = BYTES - 8;
const MAX_NAMES: usize = 1000;
const MANY: &str = "other";

#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// CLOCK_MONOTONIC. The others count from it.
    pub start_ns: u64,
    pub due_ns: Option<u64>,
    pub first_byte_ns: Option<u64>,
    pub total_ns: Option<u64>,
    pub elapsed_ns: u64,
    pub index: u32,
    /// Body bytes moved.
    pub object_bytes: u64,
    pub verify_ns: u32,
    pub worker: u16,
    pub bucket: u16,
    /// HTTP's; 0 where none came.
    pub status: u16,
    pub grpc_status: Option<i16>,
    /// [`crate::load::deed::Deed`].
    pub endpoint: u8,
    pub outcome: Outcome,
    /// 0: none.
    pub error: u16,
    pub ramp: bool,
    pub new_connection: bool,
}

impl Record {
    fn encode(&self, into: &mut Vec<u8>) {
        let instant = |at: Option<u64>| at.map_or(-1, |at| at as i64).to_le_bytes();
        let flags = u8::from(self.ramp) | u8::from(self.new_connection) << 1;
        into.extend_from_slice(&[self.endpoint, self.outcome as u8, flags, 0]);
        into.extend_from_slice(&self.error.to_le_bytes());
        into.extend_from_slice(&self.worker.to_le_bytes());
        into.extend_from_slice(&self.start_ns.to_le_bytes());
        into.extend_from_slice(&instant(self.due_ns));
        into.extend_from_slice(&instant(self.first_byte_ns));
        into.extend_from_slice(&instant(self.total_ns));
        into.extend_from_slice(&self.elapsed_ns.to_le_bytes());
        into.extend_from_slice(&self.object_bytes.to_le_bytes());
        into.extend_from_slice(&self.index.to_le_bytes());
        into.extend_from_slice(&self.verify_ns.to_le_bytes());
        into.extend_from_slice(&self.bucket.to_le_bytes());
        into.extend_from_slice(&self.status.to_le_bytes());
        into.extend_from_slice(&self.grpc_status.unwrap_or(-1).to_le_bytes());
        into.extend_from_slice(&[0; 2]);
    }
}

/// The kinds of errors that have occurred, by number. Shared by all workers.
#[derive(Default)]
pub struct Names(Mutex<Known>);

#[derive(Default)]
struct Known {
    numbers: HashMap<String, u16>,
    /// The whole text of the first of each kind.
    examples: Vec<(String, String)>,
    unwritten: Vec<(u16, String)>,
}

impl Names {
    /// The number of an error's kind: its text up to what differs from one request to the next.
    pub fn number(&self, error: &str) -> u16 {
        let name = kind_of(error);
        let mut known = self.0.lock().expect("no worker panics with it");
        if let Some(number) = known.numbers.get(name) {
            return *number;
        }
        let name = if known.numbers.len() < MAX_NAMES {
            name
        } else {
            MANY
        };
        if let Some(number) = known.numbers.get(name) {
            return *number;
        }
        let number = known.numbers.len() as u16 + 1;
        known.numbers.insert(name.to_owned(), number);
        known.examples.push((name.to_owned(), error.to_owned()));
        known.unwritten.push((number, name.to_owned()));
        number
    }

    /// Names in the order of their numbers, from 1, each with an example.
    pub fn examples(&self) -> Vec<(String, String)> {
        self.0
            .lock()
            .expect("no worker panics with it")
            .examples
            .clone()
    }

    /// The whole text of the first error of a kind.
    pub fn example(&self, number: u16) -> String {
        let examples = self.examples();
        let found = examples.get(usize::from(number).wrapping_sub(1));
        found.map_or_else(String::new, |(_, example)| example.clone())
    }

    fn take_unwritten(&self) -> Vec<(u16, String)> {
        std::mem::take(&mut self.0.lock().expect("no worker panics with it").unwritten)
    }
}

/// What comes after a colon is a server's own words: keys, sizes, node names.
fn kind_of(error: &str) -> &str {
    let kind = error.split(": ").next().unwrap_or(error);
    fitting(kind.split(" to http").next().unwrap_or(kind))
}

/// As much of a name as a record has room for.
fn fitting(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// The record that gives a number its name.
fn naming(what: u8, number: u16, name: &str) -> [u8; BYTES] {
    let (mut line, name) = ([0u8; BYTES], fitting(name));
    line[0] = what;
    line[1] = name.len() as u8;
    line[4..6].copy_from_slice(&number.to_le_bytes());
    line[8..8 + name.len()].copy_from_slice(name.as_bytes());
    line
}

/// The file.
pub struct Writer {
    file: File,
    buffer: Vec<u8>,
}

impl Writer {
    /// `endpoints`: what each number of an endpoint means.
    pub fn create<'a>(
        path: &Path,
        endpoints: impl IntoIterator<Item = (Deed, &'a str)>,
    ) -> io::Result<Self> {
        let mut header = vec![0u8; BYTES];
        header[..16].copy_from_slice(MAGIC);
        header[16..20].copy_from_slice(&(BYTES as u32).to_le_bytes());
        for (deed, name) in endpoints {
            header.extend_from_slice(&naming(ENDPOINT_NAME, deed as u16, name));
        }
        let mut file = File::create(path)?;
        file.write_all(&header)?;
        Ok(Writer {
            file,
            buffer: Vec::new(),
        })
    }

    /// Hands the records to the kernel, and before them the names that they are the first to use.
    pub fn write(&mut self, records: &[Record], names: &Names) -> io::Result<()> {
        self.buffer.clear();
        for (number, name) in names.take_unwritten() {
            self.buffer.extend_from_slice(&naming(NAME, number, &name));
        }
        for record in records {
            record.encode(&mut self.buffer);
        }
        self.file.write_all(&self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            start_ns: 1,
            due_ns: None,
            first_byte_ns: Some(2),
            total_ns: None,
            elapsed_ns: 3,
            index: 4,
            object_bytes: 5,
            verify_ns: 6,
            worker: 7,
            bucket: 8,
            status: 9,
            grpc_status: None,
            endpoint: 1,
            outcome: Outcome::Unknown,
            error: 0,
            ramp: true,
            new_connection: false,
        }
    }

    #[test]
    fn a_record_has_its_length() {
        let mut bytes = Vec::new();
        record().encode(&mut bytes);
        assert_eq!(bytes.len(), BYTES);
        assert_eq!(bytes[..4], [1, 2, 1, 0]);
        assert_eq!(bytes[16..24], (-1i64).to_le_bytes());
    }

    #[test]
    fn errors_of_a_kind_have_one_number_whatever_a_server_adds() {
        let names = Names::default();
        let first = names.number("grpc NOT_FOUND: no key 17");
        assert_eq!(first, names.number("grpc NOT_FOUND: no key 18"));
        assert_ne!(first, names.number("timeout (first byte)"));
        let expected = ("grpc NOT_FOUND".into(), "grpc NOT_FOUND: no key 17".into());
        assert_eq!(names.examples()[0], expected);
    }
}

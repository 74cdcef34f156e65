//! The form of an entry's file: magic, length and checksum of the header, the header, the body.
//!
//! An entry is acknowledged only after its file and the directory were synced, so a file that is
//! cut short or does not add up was never acknowledged and may be thrown away.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::record::{BucketState, ObjectName, Record, crc32};

const MAGIC: [u8; 8] = *b"quorum\0\x01";
const PREFIX_LEN: usize = 16;
/// Keys and user metadata have far smaller limits in S3.
const MAX_HEADER_LEN: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Header {
    Bucket { name: String, state: BucketState },
    Object { name: ObjectName, record: Record },
}

impl Header {
    fn body_len(&self) -> u64 {
        match self {
            Self::Bucket { .. } => 0,
            Self::Object { record, .. } => record.object.as_ref().map_or(0, |meta| meta.size),
        }
    }
}

/// Writes an entry without syncing it.
pub fn write(mut file: &File, header: &Header, body: &[u8]) -> io::Result<()> {
    let header = postcard::to_stdvec(header).map_err(io::Error::other)?;
    let mut start = Vec::with_capacity(PREFIX_LEN + header.len());
    start.extend_from_slice(&MAGIC);
    start.extend_from_slice(&(header.len() as u32).to_le_bytes());
    start.extend_from_slice(&crc32(&header).to_le_bytes());
    start.extend_from_slice(&header);
    file.write_all(&start)?;
    file.write_all(body)
}

/// The header of an entry's file and where its body begins; None if the file is not whole.
pub fn read_header(mut file: &File) -> io::Result<Option<(Header, u64)>> {
    let mut prefix = [0; PREFIX_LEN];
    if !fill(&mut file, &mut prefix)? || prefix[..8] != MAGIC {
        return Ok(None);
    }
    let word = |at: usize| u32::from_le_bytes(prefix[at..at + 4].try_into().expect("four bytes"));
    let (len, checksum) = (word(8) as usize, word(12));
    if len > MAX_HEADER_LEN {
        return Ok(None);
    }
    let mut encoded = vec![0; len];
    if !fill(&mut file, &mut encoded)? || crc32(&encoded) != checksum {
        return Ok(None);
    }
    let Ok(header) = postcard::from_bytes::<Header>(&encoded) else {
        return Ok(None);
    };
    let body_at = (PREFIX_LEN + len) as u64;
    let whole = file.metadata()?.len() == body_at + header.body_len();
    Ok(whole.then_some((header, body_at)))
}

/// An object's body, compared with its checksum.
pub fn read_body(file: &File, body_at: u64, size: u64, checksum: u32) -> io::Result<Bytes> {
    let mut body = vec![0; size as usize];
    file.read_exact_at(&mut body, body_at)?;
    if crc32(&body) != checksum {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a body on disk does not have the checksum it was written with",
        ));
    }
    Ok(body.into())
}

fn fill(file: &mut &File, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

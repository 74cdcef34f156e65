//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian.
//!
//! The timestamp of a packet is its entry, on the wall clock as pcapng wants it: the monotonic
//! instant plus a constant that the section's comment states. What pcapng has no field for stands
//! in the packet's comment, in words that both people and [`super::reader`] read:
//!
//! ```text
//! departed 50.012345 ms later
//! lost
//! departed 1.000000 ms later; duplicate; 45 segments, 65483 bytes on the wire
//! ```

use std::fmt::Write as _;

use super::packet::{Marks, Outcome};

pub(super) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;

pub(super) const OPTION_COMMENT: u16 = 1;
pub(super) const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_USER_APPLICATION: u16 = 4;
const OPTION_START: u16 = 2;
const OPTION_END: u16 = 3;
const OPTION_RECEIVED: u16 = 4;
const OPTION_DROPPED: u16 = 5;
const LINK_TYPE_ETHERNET: u16 = 1;
const NANOSECONDS: u8 = 9;

/// What the section's comment says around the distance of the two clocks.
pub(super) const CLOCK_BEFORE: &str = "CLOCK_MONOTONIC (the clock of samples.parquet) is ";
pub(super) const CLOCK_AFTER: &str = " ns behind the timestamps.";

/// A block that is being written at the end of a buffer.
struct Block<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Block<'a> {
    fn new(buffer: &'a mut Vec<u8>, kind: u32) -> Block<'a> {
        let start = buffer.len();
        buffer.extend_from_slice(&kind.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        Block { buffer, start }
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(bytes);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A timestamp: the upper half comes first, whatever the byte order.
    fn instant(&mut self, ns: u64) -> &mut Self {
        self.u32((ns >> 32) as u32).u32(ns as u32)
    }

    fn pad(&mut self) -> &mut Self {
        let padding = (self.start.wrapping_sub(self.buffer.len())) % 4;
        self.bytes(&[0; 3][..padding])
    }

    fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        let length = value.len().min(usize::from(u16::MAX));
        self.u16(code).u16(length as u16).bytes(&value[..length]);
        self.pad()
    }

    /// Ends the options and the block.
    fn end(&mut self) {
        self.u32(0); // opt_endofopt
        let length = (self.buffer.len() - self.start + 4) as u32;
        self.u32(length);
        self.buffer[self.start + 4..self.start + 8].copy_from_slice(&length.to_le_bytes());
    }
}

/// Begins a section. `behind_ns` is wall clock minus monotonic clock.
pub fn section(buffer: &mut Vec<u8>, behind_ns: u64) {
    let comment = format!(
        "Timestamps are the entry into the link. {CLOCK_BEFORE}{behind_ns}{CLOCK_AFTER} \
         A packet's comment says when it departed or why not."
    );
    let application = concat!("wanlat wire ", env!("CARGO_PKG_VERSION"));
    Block::new(buffer, SECTION_HEADER)
        .u32(BYTE_ORDER_MAGIC)
        .u16(1)
        .u16(0)
        .bytes(&u64::MAX.to_le_bytes()) // length of the section: not known
        .option(OPTION_COMMENT, comment.as_bytes())
        .option(OPTION_USER_APPLICATION, application.as_bytes())
        .end();
}

/// Describes an interface: one direction of one link.
pub fn interface(buffer: &mut Vec<u8>, name: &str, snap_bytes: u32) {
    Block::new(buffer, INTERFACE_DESCRIPTION)
        .u16(LINK_TYPE_ETHERNET)
        .u16(0)
        .u32(snap_bytes)
        .option(OPTION_INTERFACE_NAME, name.as_bytes())
        .option(OPTION_RESOLUTION, &[NANOSECONDS])
        .end();
}

/// A packet as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Which interface.
    pub interface: u32,
    /// Entry on the wall clock.
    pub timestamp_ns: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// What else is known.
    pub marks: Marks,
    /// Departure minus entry, where it was sent.
    pub held_ns: u64,
    /// Packets that the frame stands for, and their bytes.
    pub segments: u32,
    /// Bytes of all of them.
    pub wire_bytes: u64,
    /// Length of the whole frame.
    pub frame_bytes: u32,
    /// Its beginning.
    pub captured: &'a [u8],
}

/// Writes a packet. `comment` is scratch memory.
pub fn packet(buffer: &mut Vec<u8>, entry: &Entry<'_>, comment: &mut String) {
    comment.clear();
    write_comment(comment, entry);
    Block::new(buffer, ENHANCED_PACKET)
        .u32(entry.interface)
        .instant(entry.timestamp_ns)
        .u32(entry.captured.len() as u32)
        .u32(entry.frame_bytes)
        .bytes(entry.captured)
        .pad()
        .option(OPTION_COMMENT, comment.as_bytes())
        .end();
}

/// Most bytes that [`packet`] adds to what is captured.
pub const MOST_PACKET_OVERHEAD_BYTES: usize = 256;

fn write_comment(comment: &mut String, entry: &Entry<'_>) {
    let written = match entry.outcome {
        Outcome::Sent if entry.marks.entry_unseen => write!(comment, "departed; entry not seen"),
        Outcome::Sent => {
            let (ms, ns) = (entry.held_ns / 1_000_000, entry.held_ns % 1_000_000);
            write!(comment, "departed {ms}.{ns:06} ms later")
        }
        other => write!(comment, "{}", other.word()),
    };
    written.expect("strings take everything");
    if entry.marks.duplicate {
        comment.push_str("; duplicate");
    }
    if entry.marks.corrupted {
        comment.push_str("; corrupted");
    }
    if entry.segments > 1 {
        let (segments, bytes) = (entry.segments, entry.wire_bytes);
        write!(comment, "; {segments} segments, {bytes} bytes on the wire")
            .expect("strings take everything");
    }
}

/// Bytes of [`statistics`].
pub const STATISTICS_BYTES: u64 = 24 + 4 * 12 + 4;

/// Tells, at the end, what an interface saw and what of it is missing.
pub fn statistics(
    buffer: &mut Vec<u8>,
    interface: u32,
    started_ns: u64,
    ended_ns: u64,
    seen: u64,
    missing: u64,
) {
    let stamp = |ns: u64| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&((ns >> 32) as u32).to_le_bytes());
        bytes[4..].copy_from_slice(&(ns as u32).to_le_bytes());
        bytes
    };
    Block::new(buffer, INTERFACE_STATISTICS)
        .u32(interface)
        .instant(ended_ns)
        .option(OPTION_START, &stamp(started_ns))
        .option(OPTION_END, &stamp(ended_ns))
        .option(OPTION_RECEIVED, &seen.to_le_bytes())
        .option(OPTION_DROPPED, &missing.to_le_bytes())
        .end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_states_its_length_twice_and_is_a_multiple_of_four() {
        let mut comment = String::new();
        for length in 0..9 {
            let mut buffer = vec![0xEE; 3]; // a block starts anywhere in a buffer
            let captured = vec![7; length];
            packet(
                &mut buffer,
                &Entry {
                    interface: 1,
                    timestamp_ns: 1 << 40,
                    outcome: Outcome::Sent,
                    marks: Marks::default(),
                    held_ns: 1_000_001,
                    segments: 1,
                    wire_bytes: 9,
                    frame_bytes: 9,
                    captured: &captured,
                },
                &mut comment,
            );
            let block = &buffer[3..];
            assert_eq!(block.len() % 4, 0);
            assert_eq!(block[4..8], (block.len() as u32).to_le_bytes());
            assert_eq!(block[4..8], block[block.len() - 4..]);
            assert!(block.len() - length < MOST_PACKET_OVERHEAD_BYTES);
        }
        assert_eq!(comment, "departed 1.000001 ms later");
    }

    #[test]
    fn statistics_have_the_length_that_is_kept_free_for_them() {
        let mut buffer = Vec::new();
        statistics(&mut buffer, 0, 1, 2, 3, 4);
        assert_eq!(buffer.len() as u64, STATISTICS_BYTES);
    }
}

//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian.
//!
//! The timestamp of a packet is its entry, on the wall clock as pcapng wants it: the monotonic
//! instant plus a constant that the section's comment states. What pcapng has no field for stands
//! in the packet's comment, for people; programs read the rows:
//!
//! ```text
//! departed 50.012345 ms later
//! lost
//! departed 1.000000 ms later; duplicate; 45 segments, 65483 bytes on the wire
//! ```

use std::fmt::Write as _;

use super::packet::{Outcome, Packet};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;

const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const STATISTICS_START: u16 = 2;
const STATISTICS_END: u16 = 3;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;
const LINK_TYPE_ETHERNET: u16 = 1;
const NANOSECONDS: u8 = 9;

/// Appends a block: its fields, which `fields` writes, and its options.
fn block(
    buffer: &mut Vec<u8>,
    kind: u32,
    fields: impl FnOnce(&mut Vec<u8>),
    options: &[(u16, &[u8])],
) {
    let start = buffer.len();
    buffer.extend_from_slice(&kind.to_le_bytes());
    buffer.extend_from_slice(&[0; 4]);
    fields(buffer);
    for (code, value) in options {
        let length = value.len().min(usize::from(u16::MAX));
        buffer.extend_from_slice(&code.to_le_bytes());
        buffer.extend_from_slice(&(length as u16).to_le_bytes());
        buffer.extend_from_slice(&value[..length]);
        pad(buffer, start);
    }
    buffer.extend_from_slice(&[0; 4]); // the end of the options
    let length = ((buffer.len() - start + 4) as u32).to_le_bytes();
    buffer.extend_from_slice(&length);
    buffer[start + 4..start + 8].copy_from_slice(&length);
}

/// Fills a block that begins at `start` up to whole words.
fn pad(buffer: &mut Vec<u8>, start: usize) {
    let length = (buffer.len() - start).next_multiple_of(4);
    buffer.resize(start + length, 0);
}

fn words(buffer: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        buffer.extend_from_slice(&word.to_le_bytes());
    }
}

/// A timestamp: the upper half comes first, whatever the byte order.
fn halves(ns: u64) -> [u32; 2] {
    [(ns >> 32) as u32, ns as u32]
}

/// Begins a section. `ahead_ns` is wall clock minus monotonic clock.
pub(super) fn section(buffer: &mut Vec<u8>, ahead_ns: u64) {
    let comment = format!(
        "Timestamps are the entry into the link. CLOCK_MONOTONIC (the clock of samples.parquet) \
         is {ahead_ns} ns behind the timestamps. A packet's comment says when it departed or why \
         not."
    );
    let application = concat!("wanlat wire ", env!("CARGO_PKG_VERSION"));
    let fields = |buffer: &mut Vec<u8>| {
        // Version 1.0; the length of the section is not known.
        words(buffer, &[BYTE_ORDER_MAGIC, 1, u32::MAX, u32::MAX]);
    };
    let options = [
        (COMMENT, comment.as_bytes()),
        (USER_APPLICATION, application.as_bytes()),
    ];
    block(buffer, SECTION_HEADER, fields, &options);
}

/// Describes an interface: one direction of one link.
pub(super) fn interface(buffer: &mut Vec<u8>, name: &str, snap_bytes: u32) {
    let fields = |buffer: &mut Vec<u8>| words(buffer, &[u32::from(LINK_TYPE_ETHERNET), snap_bytes]);
    let options = [
        (INTERFACE_NAME, name.as_bytes()),
        (RESOLUTION, &[NANOSECONDS]),
    ];
    block(buffer, INTERFACE_DESCRIPTION, fields, &options);
}

/// Writes a packet that entered at `timestamp_ns` of the wall clock and stands for so many
/// segments with so many bytes.
pub(super) fn packet(
    buffer: &mut Vec<u8>,
    packet: &Packet<'_>,
    timestamp_ns: u64,
    on_the_wire: (u32, u64),
    comment: &mut String,
) {
    comment.clear();
    write_comment(comment, packet, on_the_wire).expect("strings take everything");
    let captured = packet.captured();
    let fields = |buffer: &mut Vec<u8>| {
        let start = buffer.len();
        let [upper, lower] = halves(timestamp_ns);
        let lengths = [captured.len() as u32, packet.frame_bytes];
        words(buffer, &[packet.interface, upper, lower]);
        words(buffer, &lengths);
        buffer.extend_from_slice(captured);
        pad(buffer, start);
    };
    let options = [(COMMENT, comment.as_bytes())];
    block(buffer, ENHANCED_PACKET, fields, &options);
}

fn write_comment(
    comment: &mut String,
    packet: &Packet<'_>,
    (segments, wire_bytes): (u32, u64),
) -> std::fmt::Result {
    match packet.outcome {
        Outcome::Sent => {
            let held_ns = packet.departure_ns.saturating_sub(packet.entry_ns);
            let (ms, ns) = (held_ns / 1_000_000, held_ns % 1_000_000);
            write!(comment, "departed {ms}.{ns:06} ms later")?;
        }
        Outcome::Lost => comment.push_str("lost"),
        Outcome::QueueFull => comment.push_str("queue full"),
        Outcome::Dropped => comment.push_str("dropped"),
        Outcome::Held => comment.push_str("held"),
    }
    if packet.duplicate {
        comment.push_str("; duplicate");
    }
    if segments > 1 {
        write!(
            comment,
            "; {segments} segments, {wire_bytes} bytes on the wire"
        )?;
    }
    Ok(())
}

/// Bytes of [`statistics`].
pub(super) const STATISTICS_BYTES: u64 = 24 + 4 * 12 + 4;

/// Tells, at the end, what an interface saw and what of it is missing.
pub(super) fn statistics(
    buffer: &mut Vec<u8>,
    interface: u32,
    (started_ns, ended_ns): (u64, u64),
    (seen, missing): (u64, u64),
) {
    let stamp = |ns: u64| halves(ns).map(u32::to_le_bytes).concat();
    let [upper, lower] = halves(ended_ns);
    let options = [
        (STATISTICS_START, &stamp(started_ns)[..]),
        (STATISTICS_END, &stamp(ended_ns)),
        (STATISTICS_RECEIVED, &seen.to_le_bytes()),
        (STATISTICS_DROPPED, &missing.to_le_bytes()),
    ];
    let fields = |buffer: &mut Vec<u8>| words(buffer, &[interface, upper, lower]);
    block(buffer, INTERFACE_STATISTICS, fields, &options);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_states_its_length_twice_and_is_a_multiple_of_four() {
        let mut comment = String::new();
        for length in 0..9 {
            let mut buffer = vec![0xEE; 3]; // a block starts anywhere in a buffer
            let message = vec![7; 10 + length];
            let sent = Packet {
                interface: 1,
                outcome: Outcome::Sent,
                duplicate: false,
                entry_ns: 5,
                departure_ns: 1_000_006,
                frame_bytes: 9,
                message: &message,
            };
            packet(&mut buffer, &sent, 1 << 40, (1, 9), &mut comment);
            let block = &buffer[3..];
            assert_eq!(block.len() % 4, 0);
            assert_eq!(block[4..8], (block.len() as u32).to_le_bytes());
            assert_eq!(block[4..8], block[block.len() - 4..]);
            assert_eq!(block[28..28 + length], message[10..]);
        }
        assert_eq!(comment, "departed 1.000001 ms later");
    }

    #[test]
    fn statistics_have_the_length_that_is_kept_free_for_them() {
        let mut buffer = Vec::new();
        statistics(&mut buffer, 0, (1, 2), (3, 4));
        assert_eq!(buffer.len() as u64, STATISTICS_BYTES);
    }
}

//! A record as rows of fixed length, from which a table is made.
//!
//! A row is 128 bytes, little-endian; what is not known or not there is -1 (addresses: zeros,
//! with version 0).
//!
//! | at | type | what |
//! | --- | --- | --- |
//! | 0 | i64 | entry, `CLOCK_MONOTONIC`; -1: not seen |
//! | 8 | i64 | departure, `CLOCK_MONOTONIC`; -1: none |
//! | 16 | i64 | bytes on the wire |
//! | 24 | i64 | TCP sequence number |
//! | 32 | i64 | TCP acknowledgement number |
//! | 40 | u32 | interface |
//! | 44 | u32 | frame bytes |
//! | 48 | u32 | captured bytes |
//! | 52 | u32 | segments |
//! | 56 | i32 | source port |
//! | 60 | i32 | target port |
//! | 64 | i32 | payload bytes of the transport |
//! | 68 | i32 | IP identification |
//! | 72 | i16 | TCP flags |
//! | 74 | i16 | protocol |
//! | 76 | u8 | IP version |
//! | 77 | u8 | outcome |
//! | 78 | u8 | marks: 1 duplicate, 2 corrupted |
//! | 80 | 16 bytes | source address |
//! | 96 | 16 bytes | target address |
//! | 112 | 16 bytes | zeros |

use std::fs::File;
use std::io::{self, BufReader, Write};

use serde::Serialize;

use super::pcapng::Entry;
use super::reader::Reader;
use crate::frame::{self, OFFLOAD_HEADER_BYTES};

/// Bytes of a row.
pub const ROW_BYTES: usize = 128;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// How many packets a frame stands for and how many bytes those have, with the headers of each.
/// `message` is the offload header and the beginning of the frame.
pub fn on_the_wire(message: &[u8], frame_bytes: usize) -> (u32, u64) {
    let whole = (1, frame_bytes as u64);
    let [_, gso_type, _, _, low, high, ..] = *message else {
        return whole;
    };
    let segment = usize::from(u16::from_ne_bytes([low, high]));
    if gso_type == 0 || segment == 0 {
        return whole;
    }
    match frame::facts(&message[OFFLOAD_HEADER_BYTES.min(message.len())..]).header_bytes {
        Some(header) if frame_bytes > header => {
            let segments = (frame_bytes - header).div_ceil(segment);
            let bytes = frame_bytes + (segments - 1) * header;
            (segments as u32, bytes as u64)
        }
        _ => whole,
    }
}

/// What the headers of a packet say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers {
    /// 4, 6, or 0 for what is not IP.
    pub version: u8,
    /// The transport protocol.
    pub protocol: Option<u8>,
    /// Source address, its four bytes first if it has no more.
    pub source: [u8; 16],
    /// Target address.
    pub target: [u8; 16],
    /// Identification of an IPv4 packet.
    pub identification: Option<u16>,
    /// Source and target port.
    pub ports: Option<(u16, u16)>,
    /// Sequence number, acknowledgement number, flags.
    pub tcp: Option<(u32, u32, u16)>,
    /// Bytes behind the transport header.
    pub payload_bytes: Option<u32>,
}

/// Reads the headers off a frame of `frame_bytes` of which `frame` is the beginning. Stops where
/// something makes no sense.
pub fn headers(frame: &[u8], frame_bytes: usize) -> Headers {
    let mut headers = Headers::default();
    read_headers(frame, frame_bytes, &mut headers);
    headers
}

fn read_headers(frame: &[u8], frame_bytes: usize, headers: &mut Headers) -> Option<()> {
    let offset = ip_offset(frame)?;
    let ip = &frame[offset..];
    let (protocol, ip_header, ip_bytes) = match ip.first()? >> 4 {
        4 => {
            let length = usize::from(ip[0] & 15) * 4;
            if length < 20 {
                return None;
            }
            headers.source[..4].copy_from_slice(ip.get(12..16)?);
            headers.target[..4].copy_from_slice(ip.get(16..20)?);
            headers.version = 4;
            headers.identification = Some(be16(ip, 4)?);
            headers.protocol = Some(ip[9]);
            if be16(ip, 6)? & 0x1fff != 0 {
                return None; // a later fragment has no transport header
            }
            (ip[9], length, usize::from(be16(ip, 2)?))
        }
        6 => {
            headers.source.copy_from_slice(ip.get(8..24)?);
            headers.target.copy_from_slice(ip.get(24..40)?);
            headers.version = 6;
            headers.protocol = Some(ip[6]);
            (ip[6], 40, 40 + usize::from(be16(ip, 4)?))
        }
        _ => return None,
    };
    // A length of 0 is that of an offloaded packet beyond 64 KiB.
    let ip_bytes = if ip_bytes == 0 {
        frame_bytes.saturating_sub(offset)
    } else {
        ip_bytes.min(frame_bytes.saturating_sub(offset))
    };
    let transport = ip.get(ip_header..)?;
    let transport_header = match protocol {
        PROTOCOL_TCP => {
            headers.ports = Some((be16(transport, 0)?, be16(transport, 2)?));
            let offset_and_flags = be16(transport, 12)?;
            headers.tcp = Some((
                be32(transport, 4)?,
                be32(transport, 8)?,
                offset_and_flags & 0x01ff,
            ));
            usize::from(offset_and_flags >> 12) * 4
        }
        PROTOCOL_UDP => {
            headers.ports = Some((be16(transport, 0)?, be16(transport, 2)?));
            8
        }
        _ => 0,
    };
    headers.payload_bytes = u32::try_from(ip_bytes.checked_sub(ip_header + transport_header)?).ok();
    Some(())
}

/// Where the IP header starts, behind VLAN tags; `None` for what is not IP.
pub(super) fn ip_offset(frame: &[u8]) -> Option<usize> {
    let mut offset = 14;
    for _ in 0..3 {
        match be16(frame, offset - 2)? {
            0x0800 | 0x86dd => return (frame.len() >= offset).then_some(offset),
            0x8100 | 0x88a8 => offset += 4,
            _ => return None,
        }
    }
    None
}

/// Appends a packet as a row. `behind_ns` is what the file's timestamps are ahead of the
/// monotonic clock.
pub fn append(rows: &mut Vec<u8>, entry: &Entry<'_>, behind_ns: u64) {
    let headers = headers(entry.captured, entry.frame_bytes as usize);
    let entry_ns = entry.timestamp_ns.wrapping_sub(behind_ns) as i64;
    let departure_ns = match entry.outcome {
        super::Outcome::Sent => entry_ns + entry.held_ns as i64,
        _ => -1,
    };
    let start = rows.len();
    let mut long = |value: i64| rows.extend_from_slice(&value.to_le_bytes());
    long(if entry.marks.entry_unseen {
        -1
    } else {
        entry_ns
    });
    long(departure_ns);
    long(entry.wire_bytes as i64);
    long(headers.tcp.map_or(-1, |tcp| i64::from(tcp.0)));
    long(headers.tcp.map_or(-1, |tcp| i64::from(tcp.1)));
    let mut word = |value: u32| rows.extend_from_slice(&value.to_le_bytes());
    word(entry.interface);
    word(entry.frame_bytes);
    word(entry.captured.len() as u32);
    word(entry.segments);
    word(headers.ports.map_or(u32::MAX, |ports| ports.0.into()));
    word(headers.ports.map_or(u32::MAX, |ports| ports.1.into()));
    word(headers.payload_bytes.unwrap_or(u32::MAX));
    word(headers.identification.map_or(u32::MAX, u32::from));
    let mut half = |value: u16| rows.extend_from_slice(&value.to_le_bytes());
    half(headers.tcp.map_or(u16::MAX, |tcp| tcp.2));
    half(headers.protocol.map_or(u16::MAX, u16::from));
    rows.extend_from_slice(&[
        headers.version,
        entry.outcome as u8,
        entry.marks.bits() & 3,
        0,
    ]);
    rows.extend_from_slice(&headers.source);
    rows.extend_from_slice(&headers.target);
    rows.resize(start + ROW_BYTES, 0);
}

/// What follows the rows, as one line of JSON on standard error.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    names: &'a [String],
    packets: u64,
    cut_short: bool,
}

/// Prints a record: rows on standard output, a line about them on standard error.
pub fn print(path: &str) -> io::Result<()> {
    let wrong =
        |error: String| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {error}"));
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut reader = Reader::open(BufReader::with_capacity(1 << 20, file)).map_err(wrong)?;
    let behind_ns = reader.behind_ns();
    let mut output = io::stdout().lock();
    let (mut rows, mut packets) = (Vec::new(), 0);
    while let Some(entry) = reader.next_packet().map_err(wrong)? {
        append(&mut rows, &entry, behind_ns);
        packets += 1;
        if rows.len() >= 1 << 20 {
            output.write_all(&rows)?;
            rows.clear();
        }
    }
    output.write_all(&rows)?;
    output.flush()?;
    let summary = Summary {
        names: reader.names(),
        packets,
        cut_short: reader.is_cut_short(),
    };
    eprintln!("{}", serde_json::to_string(&summary)?);
    Ok(())
}

fn be16(bytes: &[u8], offset: usize) -> Option<u16> {
    let pair = bytes.get(offset..offset + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

fn be32(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..offset + 4)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    fn tcp_frame() -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 32 + 5];
        frame[12] = 8;
        frame[14] = 0x45;
        let ip_bytes = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        frame[18..20].copy_from_slice(&[0x12, 0x34]);
        frame[23] = PROTOCOL_TCP;
        frame[26..30].copy_from_slice(&[10, 1, 0, 1]);
        frame[30..34].copy_from_slice(&[10, 2, 0, 1]);
        frame[34..38].copy_from_slice(&[0x1f, 0x90, 0, 80]);
        frame[38..46].copy_from_slice(&[0, 0, 0, 7, 0, 0, 0, 9]);
        frame[46..48].copy_from_slice(&[0x80, 0x18]);
        frame
    }

    #[test]
    fn a_tcp_packet_shows_its_addresses_ports_numbers_flags_and_payload() {
        let frame = tcp_frame();
        let headers = headers(&frame, frame.len());
        assert_eq!((headers.version, headers.protocol), (4, Some(6)));
        assert_eq!(headers.source[..4], [10, 1, 0, 1]);
        assert_eq!(headers.target[..4], [10, 2, 0, 1]);
        assert_eq!(headers.identification, Some(0x1234));
        assert_eq!(headers.ports, Some((8080, 80)));
        assert_eq!(headers.tcp, Some((7, 9, 0x18)));
        assert_eq!(headers.payload_bytes, Some(5));
    }

    #[test]
    fn padding_of_short_frames_is_no_payload() {
        let mut frame = tcp_frame();
        frame.resize(200, 0);
        assert_eq!(headers(&frame, 200).payload_bytes, Some(5));
    }

    #[test]
    fn an_offloaded_frame_stands_for_its_segments() {
        let frame = tcp_frame();
        let mut message = vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        message[4..6].copy_from_slice(&1_000u16.to_ne_bytes());
        message.extend_from_slice(&frame);
        // 66 bytes of headers and 2,500 of payload: three segments, each with its headers.
        assert_eq!(on_the_wire(&message, 66 + 2_500), (3, 3 * 66 + 2_500));
        message[1] = 0;
        assert_eq!(on_the_wire(&message, 66 + 2_500), (1, 66 + 2_500));
    }

    #[test]
    fn malformed_frames_are_read_as_far_as_they_make_sense() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let whole = tcp_frame();
        for round in 0..200_000 {
            let mut frame = whole.clone();
            for _ in 0..round % 8 {
                let at = generator.next_u64() as usize % frame.len();
                frame[at] = generator.next_u64() as u8;
            }
            frame.truncate(generator.next_u64() as usize % (frame.len() + 1));
            let claimed = generator.next_u64() as usize % 70_000;
            headers(&frame, claimed);
            let mut message = vec![1; OFFLOAD_HEADER_BYTES];
            message.extend_from_slice(&frame);
            message.truncate(generator.next_u64() as usize % (message.len() + 1));
            on_the_wire(&message, claimed);
        }
    }
}

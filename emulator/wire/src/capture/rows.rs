//! What is known of a packet, as a row of fixed length, from which a table is made.
//!
//! The file begins with a line of JSON, `{"version":1,"row_bytes":112,"names":["dc1->dc2",…]}`, the
//! names of the interfaces. Then come the rows, little-endian; what is not known or not there is
//! -1 (addresses: zeros, with version 0).
//!
//! | type | what |
//! | --- | --- |
//! | i64 | entry, departure (-1 unless it was sent): `CLOCK_MONOTONIC` |
//! | i64 | bytes on the wire, TCP sequence number, TCP acknowledgement number |
//! | i32 | interface, frame bytes, captured bytes, segments |
//! | i32 | source port, target port, payload bytes of the transport, IP identification |
//! | i16 | TCP flags, protocol |
//! | u8 | IP version, outcome, whether it is a duplicate, zero |
//! | 16 bytes | source address, the four bytes of IPv4 first |
//! | 16 bytes | target address |

use super::packet::{Outcome, Packet};
use crate::frame::{Headers, Ip};

const VERSION: u32 = 1;

/// Bytes of a row.
pub(super) const ROW_BYTES: usize = 112;

/// The line before the rows.
pub(super) fn head<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let names: Vec<&str> = names.collect();
    let head = serde_json::json!({"version": VERSION, "row_bytes": ROW_BYTES, "names": names});
    format!("{head}\n").into_bytes()
}

/// Appends a packet.
pub(super) fn append(
    rows: &mut Vec<u8>,
    packet: &Packet<'_>,
    headers: &Headers<'_>,
    (segments, wire_bytes): (u32, u64),
) {
    let departure_ns = match packet.outcome {
        Outcome::Sent => packet.departure_ns.cast_signed(),
        _ => -1,
    };
    let tcp = headers.tcp();
    for long in [
        packet.entry_ns.cast_signed(),
        departure_ns,
        wire_bytes.cast_signed(),
        tcp.map_or(-1, |tcp| i64::from(tcp.sequence)),
        tcp.map_or(-1, |tcp| i64::from(tcp.acknowledgement)),
    ] {
        rows.extend_from_slice(&long.to_le_bytes());
    }
    let ports = headers.ports();
    let payload_bytes = headers.payload_bytes(packet.frame_bytes as usize);
    let identification = headers.ip.and_then(|ip| ip.identification);
    for word in [
        packet.interface.cast_signed(),
        packet.frame_bytes.cast_signed(),
        packet.captured().len() as i32,
        segments.cast_signed(),
        ports.map_or(-1, |(source, _)| i32::from(source)),
        ports.map_or(-1, |(_, target)| i32::from(target)),
        payload_bytes.map_or(-1, |bytes| bytes as i32),
        identification.map_or(-1, i32::from),
    ] {
        rows.extend_from_slice(&word.to_le_bytes());
    }
    for half in [
        tcp.map_or(-1, |tcp| tcp.flags.cast_signed()),
        headers.ip.map_or(-1, |ip| i16::from(ip.protocol)),
    ] {
        rows.extend_from_slice(&half.to_le_bytes());
    }
    let version = headers.ip.map_or(0, |ip| ip.version);
    let is_duplicate = u8::from(packet.duplicate);
    rows.extend_from_slice(&[version, packet.outcome as u8, is_duplicate, 0]);
    rows.extend_from_slice(&addresses(headers.ip));
}

/// Source and target, 16 bytes each.
fn addresses(ip: Option<Ip<'_>>) -> [u8; 32] {
    let mut both = [0; 32];
    let told = ip.map_or(&[][..], |ip| ip.addresses);
    let (source, target) = told.split_at(told.len() / 2);
    both[..source.len()].copy_from_slice(source);
    both[16..16 + target.len()].copy_from_slice(target);
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_is_known_and_minus_one_for_the_rest() {
        let mut message = vec![0; 10 + 14 + 20 + 32 + 5];
        message[10..][12..14].copy_from_slice(&[8, 0]);
        message[24..][..4].copy_from_slice(&[0x45, 0, 0, 57]);
        message[24..][4..10].copy_from_slice(&[0x12, 0x34, 0, 0, 64, 6]);
        message[24..][12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 1]);
        message[44..][..4].copy_from_slice(&[0x1f, 0x90, 0, 80]);
        message[44..][4..14].copy_from_slice(&[0, 0, 0, 7, 0, 0, 0, 9, 0x80, 0x18]);
        let sent = Packet {
            interface: 3,
            outcome: Outcome::Sent,
            duplicate: true,
            entry_ns: 5,
            departure_ns: 6,
            frame_bytes: 200, // with padding, which is no payload
            message: &message,
        };
        let lost = Packet {
            outcome: Outcome::Lost,
            duplicate: false,
            message: &message[..22],
            ..sent
        };
        let mut rows = Vec::new();
        for packet in [sent, lost] {
            let headers = Headers::of(packet.captured());
            append(&mut rows, &packet, &headers, packet.on_the_wire(&headers));
        }
        assert_eq!(rows.len(), 2 * ROW_BYTES);
        let long = |at: usize| i64::from_le_bytes(rows[at..at + 8].try_into().unwrap());
        let word = |at: usize| i32::from_le_bytes(rows[at..at + 4].try_into().unwrap());
        assert_eq!([0, 8, 16, 24, 32].map(long), [5, 6, 200, 7, 9]);
        let words = [40, 44, 48, 52, 56, 60, 64, 68].map(word);
        assert_eq!(words, [3, 200, 71, 1, 8080, 80, 5, 0x1234]);
        assert_eq!(rows[72..80], [0x18, 0, 6, 0, 4, 0, 1, 0]);
        assert_eq!(rows[80..84], [10, 1, 0, 1]);
        assert_eq!(rows[96..100], [10, 2, 0, 1]);
        assert_eq!([112, 120, 128, 136, 144].map(long), [5, -1, 200, -1, -1]);
        assert_eq!([168, 172, 176, 180].map(word), [-1; 4]);
        assert_eq!(rows[184..192], [255, 255, 255, 255, 0, 1, 0, 0]);
    }
}

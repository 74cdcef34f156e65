//! Offloaded frames, cut into the packets that they stand for.
//!
//! TCP and UDP hand the kernel segments of up to 64 KiB and leave cutting to whoever sends them
//! (GSO). `wire` passes them whole; but the checksums of the packets exist only once they are
//! cut, and without a checksum nobody would notice that a packet is corrupted.

use crate::checksum;
use crate::frame::{self, OFFLOAD_HEADER_BYTES, Segmentable};

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;
const PROTOCOL_TCP: u64 = 6;
const PROTOCOL_UDP: u64 = 17;

/// How many packets a message stands for, as far as it can be cut: 1 for an ordinary frame, 0
/// for one that is offloaded in a way that is not known here (a tunnel, say).
pub fn count(message: &[u8]) -> usize {
    match frame::segment_payload_bytes(message) {
        None => 1,
        Some(segment) => parts(message).map_or(0, |(frame, parts)| {
            (frame.len() - parts.payload).div_ceil(segment)
        }),
    }
}

/// The packets of an offloaded message, as messages with checksums and without offload; none if
/// it is not offloaded, or not in a way that is known here.
pub fn cut(message: &[u8]) -> Vec<Vec<u8>> {
    let (Some(segment), Some((frame, parts))) =
        (frame::segment_payload_bytes(message), parts(message))
    else {
        return Vec::new();
    };
    let (headers, payload) = frame.split_at(parts.payload);
    let packets = payload.len().div_ceil(segment);
    payload
        .chunks(segment)
        .enumerate()
        .map(|(index, chunk)| {
            let mut packet = [&[0; OFFLOAD_HEADER_BYTES], headers, chunk].concat();
            let frame = &mut packet[OFFLOAD_HEADER_BYTES..];
            if parts.is_tcp {
                number_tcp(&mut frame[parts.transport..], index, segment, packets);
            } else {
                let length = (frame.len() - parts.transport) as u16;
                frame[parts.transport + 4..][..2].copy_from_slice(&length.to_be_bytes());
            }
            finish_network(&mut frame[parts.network..], &parts, index);
            finish_transport(&mut frame[parts.network..], &parts);
            packet
        })
        .collect()
}

fn parts(message: &[u8]) -> Option<(&[u8], Segmentable)> {
    let frame = message.get(OFFLOAD_HEADER_BYTES..)?;
    Some((frame, frame::segmentable(frame)?))
}

/// As `tcp_gso_segment` of the kernel does it.
fn number_tcp(tcp: &mut [u8], index: usize, segment: usize, packets: usize) {
    let first = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    let own = first.wrapping_add((index * segment) as u32);
    tcp[4..8].copy_from_slice(&own.to_be_bytes());
    if index + 1 < packets {
        tcp[13] &= !FIN_PSH;
    }
    if index > 0 {
        tcp[13] &= !CWR;
    }
}

fn finish_network(packet: &mut [u8], parts: &Segmentable, index: usize) {
    let length = packet.len();
    if parts.version == 6 {
        packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        return;
    }
    let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(index as u16);
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[10..12].fill(0);
    let header = &packet[..parts.transport - parts.network];
    let sum = checksum::folded(checksum::sum(header, 0));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn finish_transport(packet: &mut [u8], parts: &Segmentable) {
    let addresses = if parts.version == 6 { 8..40 } else { 12..20 };
    let transport = parts.transport - parts.network;
    let protocol = if parts.is_tcp {
        PROTOCOL_TCP
    } else {
        PROTOCOL_UDP
    };
    let field = transport + if parts.is_tcp { 16 } else { 6 };
    packet[field..field + 2].fill(0);
    let pseudo_header = checksum::sum(
        &packet[addresses],
        protocol + (packet.len() - transport) as u64,
    );
    let sum = match checksum::folded(checksum::sum(&packet[transport..], pseudo_header)) {
        0 if !parts.is_tcp => 0xffff, // RFC 768: 0 would mean that there is none
        sum => sum,
    };
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP_FLAGS: u8 = CWR | FIN_PSH | 0x10;

    /// An offloaded message: 14 + 20 or 40 + 20 or 8 bytes of headers and `payload_bytes` more.
    fn offloaded(version: u8, is_tcp: bool, payload_bytes: usize, segment: u16) -> Vec<u8> {
        let payload = (0..payload_bytes).map(|i| (i * 7 + i / 256) as u8);
        let mut frame = vec![2; 12];
        let protocol = if is_tcp { 6 } else { 17 };
        if version == 6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol, 64]);
            frame.extend((0..32).map(|i| 0x20 + i));
        } else {
            frame.extend([
                0x08, 0, 0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, protocol, 0, 0,
            ]);
            frame.extend([10, 1, 0, 1, 10, 2, 0, 1]);
        }
        frame.extend([0x12, 0x34, 0x56, 0x78]); // ports
        if is_tcp {
            frame.extend([0xff, 0xff, 0xff, 0x00, 0, 0, 0, 9, 0x50, TCP_FLAGS]);
            frame.extend([0; 6]);
        } else {
            frame.extend([0; 4]);
        }
        frame.extend(payload);
        let mut message = vec![1, if is_tcp { version / 6 * 3 + 1 } else { 5 }, 0, 0];
        message.extend(segment.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(frame);
        message
    }

    /// Checks lengths and both checksums of a packet; returns its TCP or UDP header and payload.
    fn valid(message: &[u8]) -> (&[u8], &[u8]) {
        assert_eq!(message[..OFFLOAD_HEADER_BYTES], [0; OFFLOAD_HEADER_BYTES]);
        let frame = &message[OFFLOAD_HEADER_BYTES..];
        let parts = frame::segmentable(frame).unwrap();
        let packet = &frame[parts.network..];
        assert_eq!(frame::ip_packet(frame), Some(parts.network..frame.len()));
        let (addresses, protocol) = if parts.version == 6 {
            (&packet[8..40], packet[6])
        } else {
            assert_eq!(checksum::folded(checksum::sum(&packet[..20], 0)), 0);
            (&packet[12..20], packet[9])
        };
        let transport = &frame[parts.transport..];
        if !parts.is_tcp {
            assert_eq!(
                usize::from(frame::be16(transport, 4).unwrap()),
                transport.len()
            );
        }
        let pseudo_header = u64::from(protocol) + transport.len() as u64;
        let sum = checksum::sum(transport, checksum::sum(addresses, pseudo_header));
        assert_eq!(checksum::folded(sum), 0);
        transport.split_at(parts.payload - parts.transport)
    }

    #[test]
    fn the_packets_together_are_the_frame_and_each_is_valid() {
        for version in [4, 6] {
            for is_tcp in [true, false] {
                for payload_bytes in [1, 99, 100, 101, 1_000, 1_001] {
                    let message = offloaded(version, is_tcp, payload_bytes, 100);
                    let packets = cut(&message);
                    assert_eq!(packets.len(), payload_bytes.div_ceil(100));
                    assert_eq!(packets.len(), count(&message));
                    let payload: Vec<u8> = packets
                        .iter()
                        .flat_map(|packet| valid(packet).1.to_vec())
                        .collect();
                    assert!(message.ends_with(&payload) && payload.len() == payload_bytes);
                }
            }
        }
    }

    #[test]
    fn tcp_numbers_go_on_and_flags_stand_where_they_belong() {
        let packets = cut(&offloaded(4, true, 250, 100));
        let headers: Vec<&[u8]> = packets.iter().map(|packet| valid(packet).0).collect();
        let numbers = headers.iter().map(|tcp| [tcp[4], tcp[5], tcp[6], tcp[7]]);
        let numbers: Vec<u32> = numbers.map(u32::from_be_bytes).collect();
        assert_eq!(numbers, [0xffff_ff00, 0xffff_ff64, 0xffff_ffc8]);
        let flags: Vec<u8> = headers.iter().map(|tcp| tcp[13]).collect();
        assert_eq!(flags, [0x10 | CWR, 0x10, 0x10 | FIN_PSH]);
        let identifications: Vec<&[u8]> = packets.iter().map(|p| &p[10 + 14 + 4..][..2]).collect();
        assert_eq!(identifications, [[0xff, 0xff], [0, 0], [0, 1]]);
    }

    #[test]
    fn what_cannot_be_cut_is_left_alone_and_counts_for_none() {
        let message = offloaded(4, true, 250, 100);
        let mut arp = message.clone();
        arp[10 + 13] = 6;
        let mut other_protocol = message.clone();
        other_protocol[10 + 14 + 9] = 47;
        for message in [arp, other_protocol, message[..60].to_vec(), vec![1; 10]] {
            assert!(cut(&message).is_empty());
            assert_eq!(count(&message), 0);
        }
        let mut ordinary = message.clone();
        ordinary[1] = 0;
        assert!(cut(&ordinary).is_empty());
        assert_eq!(count(&ordinary), 1);
    }
}

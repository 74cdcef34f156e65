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

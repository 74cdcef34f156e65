//! A flipped bit, such that the receiver's checksum can notice it.

use crate::checksum;
use crate::draws::Flip;
use crate::frame::{self, OFFLOAD_HEADER_BYTES};
use crate::segments;

/// How many packets of a message can be corrupted: those that it stands for. None if it is not
/// IP (a flipped bit in an ARP packet would be believed, there is no checksum in it) or cannot be
/// cut.
pub fn corruptible_packets(message: &[u8]) -> usize {
    match message
        .get(OFFLOAD_HEADER_BYTES..)
        .and_then(frame::ip_packet)
    {
        Some(packet) if !packet.is_empty() => segments::count(message),
        _ => 0,
    }
}

/// The packets of an offloaded message, with these bits flipped; none if it is an ordinary one,
/// which [`flip`] can do in place.
pub fn cut_and_flip(message: &[u8], flips: &[Flip]) -> Vec<Vec<u8>> {
    let mut packets = segments::cut(message);
    for flip in flips {
        if let Some(packet) = packets.get_mut(flip.packet) {
            self::flip(packet, *flip);
        }
    }
    packets
}

/// Flips one bit of an ordinary message's IP packet, after completing its checksum.
pub fn flip(message: &mut [u8], flip: Flip) {
    checksum::complete(message);
    let Some(frame) = message.get_mut(OFFLOAD_HEADER_BYTES..) else {
        return;
    };
    let Some(packet) = frame::ip_packet(frame) else {
        return;
    };
    let bits = 8 * packet.len() as u128;
    let bit = ((u128::from(flip.place) * bits) >> 64) as usize;
    if let Some(byte) = frame[packet].get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

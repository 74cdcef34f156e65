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

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP message of `payload_bytes`, with 6 bytes of padding behind it.
    fn udp(payload_bytes: usize) -> Vec<u8> {
        let mut message = vec![0; OFFLOAD_HEADER_BYTES + 14 + 28 + payload_bytes + 6];
        let frame = &mut message[OFFLOAD_HEADER_BYTES..];
        frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
        frame[16..18].copy_from_slice(&(28 + payload_bytes as u16).to_be_bytes());
        frame[23] = 17;
        message
    }

    #[test]
    fn exactly_one_bit_of_the_ip_packet_is_flipped_and_each_can_be() {
        let message = udp(4);
        assert_eq!(corruptible_packets(&message), 1);
        let bits = 8 * 32;
        let mut hit = vec![0; message.len()];
        for bit in 0..bits {
            let mut flipped = message.clone();
            let place = (u128::from(u64::MAX) * bit / bits) as u64 + 1;
            flip(&mut flipped, Flip { packet: 0, place });
            for (position, (was, is)) in message.iter().zip(&flipped).enumerate() {
                hit[position] |= was ^ is;
            }
            let changed = message
                .iter()
                .zip(&flipped)
                .map(|(was, is)| (was ^ is).count_ones());
            assert_eq!(changed.sum::<u32>(), 1);
        }
        let packet = OFFLOAD_HEADER_BYTES + 14..message.len() - 6;
        for (position, hit) in hit.into_iter().enumerate() {
            assert_eq!(hit, if packet.contains(&position) { 0xff } else { 0 });
        }
    }

    #[test]
    fn the_flip_comes_after_the_checksum_so_that_it_can_be_noticed() {
        let mut message = udp(100);
        message[0] = 1;
        message[6..8].copy_from_slice(&34u16.to_ne_bytes());
        message[8..10].copy_from_slice(&6u16.to_ne_bytes());
        let mut whole = message.clone();
        checksum::complete(&mut whole);
        let flip_last = Flip {
            packet: 0,
            place: u64::MAX,
        };
        flip(&mut message, flip_last);
        assert_eq!(message[..10], [0; 10]);
        let differs: Vec<usize> = (0..message.len())
            .filter(|&i| message[i] != whole[i])
            .collect();
        assert_eq!(differs, [message.len() - 7]);
    }

    #[test]
    fn only_ip_is_corrupted() {
        let mut arp = udp(4);
        arp[OFFLOAD_HEADER_BYTES + 13] = 6;
        let before = arp.clone();
        assert_eq!(corruptible_packets(&arp), 0);
        flip(
            &mut arp,
            Flip {
                packet: 0,
                place: 1 << 60,
            },
        );
        assert_eq!(arp, before);
        for length in 0..before.len() {
            let mut cut = udp(4);
            cut.truncate(length);
            flip(
                &mut cut,
                Flip {
                    packet: 0,
                    place: u64::MAX,
                },
            );
            corruptible_packets(&cut);
        }
    }
}

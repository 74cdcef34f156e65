//! Internet checksums, and those that an offload was to fill in.

use crate::frame::OFFLOAD_HEADER_BYTES;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the frame has the sum of the pseudo-header where its checksum
/// belongs, and who receives it takes the rest for good.
const NEEDS_CHECKSUM: u8 = 1;

/// `VIRTIO_NET_HDR_F_DATA_VALID`: somebody has verified the checksum.
const DATA_VALID: u8 = 2;

/// The ones' complement sum of 16-bit words (RFC 1071), begun with `start`.
pub fn sum(bytes: &[u8], start: u64) -> u64 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().copied().unwrap_or(0);
    words.fold(start, |sum, word| {
        sum + u64::from(u16::from_be_bytes([word[0], word[1]]))
    }) + (u64::from(last) << 8)
}

/// The checksum that belongs to a sum.
pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Fills in the checksum that a message lacks, if it lacks one, so that its receiver verifies
/// it. What an offload header says may be nonsense: then nothing is done.
pub fn complete(message: &mut [u8]) {
    let Some((header, frame)) = message.split_at_mut_checked(OFFLOAD_HEADER_BYTES) else {
        return;
    };
    if header[0] & NEEDS_CHECKSUM != 0 {
        let start = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        let field = start + usize::from(u16::from_ne_bytes([header[8], header[9]]));
        if field + 2 > frame.len() {
            return;
        }
        let checksum = match folded(sum(&frame[start..], 0)) {
            0 => 0xffff, // 0 would mean that there is none (UDP); both are the same number
            checksum => checksum,
        };
        frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        header[6..10].fill(0);
    }
    header[0] &= !(NEEDS_CHECKSUM | DATA_VALID);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(folded(sum(&example, 0)), !0xddf2);
        assert_eq!(
            folded(sum(&[0xff], 0)),
            !0xff00,
            "an odd byte is the high one"
        );
    }

    #[test]
    fn a_missing_checksum_is_filled_in_and_verifies() {
        let mut message = vec![0u8; OFFLOAD_HEADER_BYTES + 60];
        let frame = &mut message[OFFLOAD_HEADER_BYTES..];
        for (i, byte) in frame.iter_mut().enumerate() {
            *byte = i as u8;
        }
        // The sum of the pseudo-header stands in the field, at 34 + 6.
        frame[40..42].copy_from_slice(&0x1234u16.to_be_bytes());
        message[0] = NEEDS_CHECKSUM | DATA_VALID;
        message[6..8].copy_from_slice(&34u16.to_ne_bytes());
        message[8..10].copy_from_slice(&6u16.to_ne_bytes());
        complete(&mut message);
        let frame = &message[OFFLOAD_HEADER_BYTES..];
        assert_eq!(
            folded(sum(&frame[34..], 0x1234)),
            0,
            "valid with the pseudo-header"
        );
        assert_eq!(message[..10], [0; 10]);
    }

    #[test]
    fn nonsense_in_the_header_changes_nothing() {
        for (start, offset) in [(0u16, 59u16), (65_535, 65_535), (60, 0), (0, 60)] {
            let mut message = vec![7u8; OFFLOAD_HEADER_BYTES + 60];
            message[0] = NEEDS_CHECKSUM;
            message[6..8].copy_from_slice(&start.to_ne_bytes());
            message[8..10].copy_from_slice(&offset.to_ne_bytes());
            complete(&mut message);
            assert_eq!(message[OFFLOAD_HEADER_BYTES..], [7; 60]);
        }
        for length in 0..OFFLOAD_HEADER_BYTES {
            complete(&mut vec![1; length]);
        }
    }
}

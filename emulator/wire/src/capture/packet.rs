//! One packet of the record, on its way from whoever saw it to the writer.

use crate::frame::OFFLOAD_HEADER_BYTES;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// It left.
    Sent = 0,
    /// It was lost, as asked. Of netem: it entered and never left.
    Lost = 1,
    /// It found the transmission queue full.
    QueueFull = 2,
    /// The emulation had no room for it, or the kernel did not take it.
    Dropped = 3,
    /// It was on its way when the record ended.
    Held = 4,
    /// The record could not follow it to its end.
    Unknown = 5,
}

impl Outcome {
    /// All of them, by number.
    pub const ALL: [Outcome; 6] = [
        Outcome::Sent,
        Outcome::Lost,
        Outcome::QueueFull,
        Outcome::Dropped,
        Outcome::Held,
        Outcome::Unknown,
    ];

    /// The word for it in the record.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::Lost => "lost",
            Outcome::QueueFull => "queue full",
            Outcome::Dropped => "dropped",
            Outcome::Held => "held",
            Outcome::Unknown => "unknown",
        }
    }
}

/// What else is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// It is a copy that the link made.
    pub duplicate: bool,
    /// The link damaged it.
    pub corrupted: bool,
    /// Nobody saw it enter: its entry is the instant of its departure.
    pub entry_unseen: bool,
}

impl Marks {
    pub(super) fn bits(self) -> u8 {
        u8::from(self.duplicate) | u8::from(self.corrupted) << 1 | u8::from(self.entry_unseen) << 2
    }

    pub(super) fn from_bits(bits: u8) -> Marks {
        Marks {
            duplicate: bits & 1 != 0,
            corrupted: bits & 2 != 0,
            entry_unseen: bits & 4 != 0,
        }
    }
}

/// One packet with its whole history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Which interface of the record.
    pub interface: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// What else is known.
    pub marks: Marks,
    /// When it entered the link.
    pub entry_ns: u64,
    /// When it left the link; without meaning unless it was sent.
    pub departure_ns: u64,
    /// Length of the whole frame.
    pub frame_bytes: u32,
    /// The offload header and the beginning of the frame.
    pub message: &'a [u8],
}

/// Bytes of a packet in the queue before its message.
const HEAD_BYTES: usize = 32;

impl Packet<'_> {
    /// How much of `message` is kept at a snap length.
    pub fn kept_bytes(message_bytes: usize, snap_bytes: u32) -> usize {
        message_bytes.min(OFFLOAD_HEADER_BYTES + snap_bytes as usize)
    }

    /// Bytes that [`Packet::append_to`] appends.
    pub fn queued_bytes(&self) -> usize {
        HEAD_BYTES + self.message.len()
    }

    /// Appends the packet to a queue.
    pub fn append_to(&self, queue: &mut Vec<u8>) {
        let mut head = [0; HEAD_BYTES];
        head[0..8].copy_from_slice(&self.entry_ns.to_ne_bytes());
        head[8..16].copy_from_slice(&self.departure_ns.to_ne_bytes());
        head[16..20].copy_from_slice(&self.interface.to_ne_bytes());
        head[20..24].copy_from_slice(&self.frame_bytes.to_ne_bytes());
        head[24..28].copy_from_slice(&(self.message.len() as u32).to_ne_bytes());
        head[28] = self.outcome as u8;
        head[29] = self.marks.bits();
        queue.extend_from_slice(&head);
        queue.extend_from_slice(self.message);
    }

    /// Takes the first packet off a queue; `None` at its end.
    pub fn take_from<'q>(queue: &mut &'q [u8]) -> Option<Packet<'q>> {
        let (head, rest) = queue.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        let (message, rest) = rest.split_at_checked(word(24) as usize)?;
        *queue = rest;
        Some(Packet {
            interface: word(16),
            outcome: *Outcome::ALL.get(usize::from(head[28]))?,
            marks: Marks::from_bits(head[29]),
            entry_ns: long(0),
            departure_ns: long(8),
            frame_bytes: word(20),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_off_the_queue_as_they_went_on() {
        let packets = [
            Packet {
                interface: 3,
                outcome: Outcome::Sent,
                marks: Marks {
                    duplicate: true,
                    ..Marks::default()
                },
                entry_ns: 5,
                departure_ns: u64::MAX,
                frame_bytes: 65_549,
                message: b"0123456789frame",
            },
            Packet {
                interface: 0,
                outcome: Outcome::QueueFull,
                marks: Marks {
                    corrupted: true,
                    entry_unseen: true,
                    ..Marks::default()
                },
                entry_ns: 7,
                departure_ns: 0,
                frame_bytes: 0,
                message: b"",
            },
        ];
        let mut queue = Vec::new();
        for packet in &packets {
            let before = queue.len();
            packet.append_to(&mut queue);
            assert_eq!(queue.len() - before, packet.queued_bytes());
        }
        let mut rest = queue.as_slice();
        for packet in packets {
            assert_eq!(Packet::take_from(&mut rest), Some(packet));
        }
        assert_eq!(Packet::take_from(&mut rest), None);
    }
}

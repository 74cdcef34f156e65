//! One packet of the record, on its way from the event loop to the writer.

use crate::frame::{self, Headers, OFFLOAD_HEADER_BYTES};

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// It left.
    Sent = 0,
    /// It was lost, as asked.
    Lost = 1,
    /// It found the transmission queue full.
    QueueFull = 2,
    /// The emulation had no room for it, or the kernel did not take it.
    Dropped = 3,
    /// It was on its way when the record ended.
    Held = 4,
}

impl Outcome {
    const ALL: [Outcome; 5] = [
        Outcome::Sent,
        Outcome::Lost,
        Outcome::QueueFull,
        Outcome::Dropped,
        Outcome::Held,
    ];
}

/// One packet with its whole history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// Which interface of the record.
    pub interface: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether it is a copy that the link made.
    pub duplicate: bool,
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
    /// What is kept of the frame.
    pub fn captured(&self) -> &[u8] {
        self.message.get(OFFLOAD_HEADER_BYTES..).unwrap_or(&[])
    }

    /// How many packets the frame stands for, and their bytes, with the headers of each.
    pub fn on_the_wire(&self, headers: &Headers<'_>) -> (u32, u64) {
        let frame_bytes = self.frame_bytes as usize;
        frame::on_the_wire(self.message, frame_bytes, headers.header_bytes())
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
        head[29] = u8::from(self.duplicate);
        queue.extend_from_slice(&head);
        queue.extend_from_slice(self.message);
    }
}

impl<'a> Packet<'a> {
    /// Takes the first packet off a queue; `None` at its end.
    pub fn take_from(queue: &mut &'a [u8]) -> Option<Packet<'a>> {
        let (head, rest) = queue.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        let (message, rest) = rest.split_at_checked(word(24) as usize)?;
        *queue = rest;
        Some(Packet {
            interface: word(16),
            outcome: *Outcome::ALL.get(usize::from(head[28]))?,
            duplicate: head[29] != 0,
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
        let mut queue = Vec::new();
        let packets = Outcome::ALL.map(|outcome| Packet {
            interface: outcome as u32,
            outcome,
            duplicate: outcome == Outcome::Held,
            entry_ns: 5,
            departure_ns: u64::MAX,
            frame_bytes: 65_549,
            message: &b"0123456789frame"[..3 * outcome as usize],
        });
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

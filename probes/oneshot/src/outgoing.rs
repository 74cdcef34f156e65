//! What is sent: bytes that are there, then a body, made a block at a time, then bytes again.
//!
//! A body up to [`WHOLE_BYTES`] is made before the clock starts. Of a longer one only the first
//! block is, and each other one when the kernel has taken the one before it: so a body of any length
//! takes the memory of a block, and its bytes are in the processor's cache when the kernel copies
//! them, which those of a large buffer made ahead are not. What making them took while the clock ran
//! is told. Meanwhile the kernel sends what it has taken, so that only where the network is as
//! fast as memory does it delay anything.

use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;

use bytes::{Buf, Bytes};

use crate::body::{self, WHOLE_BYTES};
use crate::clock;

/// A multiple of 8, half of a common second-level cache at most.
const BLOCK_BYTES: usize = 256 * 1024;

/// Bytes on their way out. As a [`Buf`], what is left of them.
#[derive(Debug, Default)]
pub struct Outgoing {
    before: Bytes,
    seed: u64,
    /// The part of the body that is made and not sent yet begins at `at`.
    block: Vec<u8>,
    at: usize,
    /// How many of the body's bytes were made.
    made: u64,
    body_bytes: u64,
    after: Bytes,
    making_ns: Rc<Cell<u64>>,
}

impl Outgoing {
    /// The body of `seed`, between the bytes of two others.
    pub fn around(before: Bytes, seed: u64, body_bytes: u64, after: Bytes) -> Self {
        let first = if body_bytes <= WHOLE_BYTES {
            body_bytes as usize
        } else {
            BLOCK_BYTES
        };
        let mut outgoing = Outgoing {
            before,
            seed,
            block: vec![0; first],
            at: 0,
            made: 0,
            body_bytes,
            after,
            making_ns: Rc::default(),
        };
        outgoing.make();
        outgoing
    }

    /// The body of `seed` alone.
    pub fn body(seed: u64, bytes: u64) -> Self {
        Outgoing::around(Bytes::new(), seed, bytes, Bytes::new())
    }

    /// Grows by what making the body takes from now on.
    pub fn making_ns(&self) -> Rc<Cell<u64>> {
        self.making_ns.clone()
    }

    /// What is left of it, in bytes.
    pub fn left(&self) -> u64 {
        let of_body = self.body_bytes - self.made + (self.block.len() - self.at) as u64;
        self.before.len() as u64 + of_body + self.after.len() as u64
    }

    fn make(&mut self) {
        let left = self.body_bytes - self.made;
        if left < self.block.len() as u64 {
            self.block.truncate(left as usize);
        }
        body::fill(self.seed, self.made / 8, &mut self.block);
        self.made += self.block.len() as u64;
        self.at = 0;
    }

    fn make_next(&mut self) {
        let started_ns = clock::now_ns();
        self.make();
        let spent_ns = clock::now_ns() - started_ns;
        self.making_ns.set(self.making_ns.get() + spent_ns);
    }
}

impl From<Bytes> for Outgoing {
    fn from(before: Bytes) -> Self {
        Outgoing {
            before,
            ..Outgoing::default()
        }
    }
}

impl From<Vec<u8>> for Outgoing {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.left() as usize
    }

    fn chunk(&self) -> &[u8] {
        if self.before.has_remaining() {
            &self.before
        } else if self.at < self.block.len() {
            &self.block[self.at..]
        } else {
            &self.after
        }
    }

    /// All that is there at once, so that a small message is one write, and one segment.
    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let whole = self.made == self.body_bytes;
        let after = if whole { &self.after[..] } else { &[] };
        let parts = [&self.before[..], &self.block[self.at..], after];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let mut given = 0;
        for (slot, part) in into.iter_mut().zip(parts) {
            *slot = IoSlice::new(part);
            given += 1;
        }
        given
    }

    fn advance(&mut self, mut bytes: usize) {
        let of_before = bytes.min(self.before.len());
        self.before.advance(of_before);
        bytes -= of_before;
        while bytes > 0 && self.at < self.block.len() {
            let of_block = bytes.min(self.block.len() - self.at);
            self.at += of_block;
            bytes -= of_block;
            if self.at == self.block.len() && self.made < self.body_bytes {
                self.make_next();
            }
        }
        self.after.advance(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes;

    /// Everything, sent in pieces whose lengths look random, of what is offered at once.
    fn sent(mut outgoing: Outgoing, round: u64) -> Vec<u8> {
        let (mut sent, mut index) = (Vec::new(), 0);
        while outgoing.has_remaining() {
            let mut slices = [IoSlice::new(&[]); 4];
            let given = outgoing.chunks_vectored(&mut slices);
            let offered = slices[..given]
                .iter()
                .flat_map(|slice| slice.iter().copied());
            let offered: Vec<u8> = offered.collect();
            assert_eq!(offered[0], outgoing.chunk()[0]);
            let taken = (lanes::word(round, index) as usize % 900_000 + 1).min(offered.len());
            sent.extend_from_slice(&offered[..taken]);
            let left = outgoing.remaining();
            outgoing.advance(taken);
            assert_eq!(outgoing.remaining(), left - taken);
            index += 1;
        }
        sent
    }

    #[test]
    fn what_is_sent_is_the_body_and_what_is_around_it_whatever_the_kernel_takes_at_once() {
        let (before, after) = (Bytes::from_static(b"before"), Bytes::from_static(b"after"));
        let sizes = [0, 1000, WHOLE_BYTES, WHOLE_BYTES + 1, WHOLE_BYTES + 999_999];
        for (round, bytes) in (0..).zip(sizes) {
            let body = body::whole(7, bytes);
            let outgoing = Outgoing::around(before.clone(), 7, bytes, after.clone());
            let making_ns = outgoing.making_ns();
            let expected = [&before[..], &body, &after].concat();
            assert!(sent(outgoing, round) == expected, "{bytes} bytes");
            assert_eq!(making_ns.get() > 0, bytes > WHOLE_BYTES, "{bytes} bytes");
        }
    }

    #[test]
    fn a_long_body_takes_the_memory_of_a_block() {
        let outgoing = Outgoing::body(1, 5 << 30);
        assert_eq!(outgoing.left(), 5 << 30);
        assert_eq!(outgoing.block.capacity(), BLOCK_BYTES);
    }
}

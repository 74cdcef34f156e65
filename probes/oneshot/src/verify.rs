//! Is a body that comes the one that must come? Compared while it arrives, piece by piece.
//!
//! Whoever knows a body's seed knows each of its bytes, so they are made again and compared, all of
//! them: nothing has to be known before the body comes, nothing of it has to be kept, and there is
//! no checksum that two bodies could share. It is also the cheapest way: making 8 bytes takes two
//! multiplications, which vectors do many at a time ([`crate::lanes`]), where a CRC of what comes
//! would have to be held against a CRC of bytes that must be made all the same.
//!
//! SHA-256 of what came can be told too, at no cost while the clock runs: a body that is the right
//! one has the hash of the right one. Only of a wrong one is it computed while it arrives, from the
//! first wrong piece on, with the bytes before it made again.

use sha2::{Digest, Sha256};

use crate::{body, clock, lanes};

/// Compares the pieces of one body, in order.
#[derive(Debug, Clone)]
pub struct Verifier {
    seed: u64,
    bytes: u64,
    wrong: Option<Wrong>,
    spent_ns: u64,
}

#[derive(Debug, Clone)]
struct Wrong {
    first: u64,
    /// Of everything that came.
    hasher: Sha256,
}

impl Verifier {
    /// Of a body that should be the one of `seed`.
    pub fn new(seed: u64) -> Self {
        Verifier {
            seed,
            bytes: 0,
            wrong: None,
            spent_ns: 0,
        }
    }

    /// The next bytes have come. They may be cut off anywhere.
    pub fn take(&mut self, piece: &[u8]) {
        let started_ns = clock::now_ns();
        match &mut self.wrong {
            Some(wrong) => wrong.hasher.update(piece),
            None => {
                if let Some(at) = first_wrong(self.seed, self.bytes, piece) {
                    let mut hasher = body::hasher(self.seed, self.bytes);
                    hasher.update(piece);
                    let first = self.bytes + at as u64;
                    self.wrong = Some(Wrong { first, hasher });
                }
            }
        }
        self.bytes += piece.len() as u64;
        self.spent_ns += clock::now_ns() - started_ns;
    }

    /// How many bytes have come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Which byte is not as it must be; None: all that came are.
    pub fn first_wrong(&self) -> Option<u64> {
        self.wrong.as_ref().map(|wrong| wrong.first)
    }

    /// Have so many bytes come, and no other ones?
    pub fn is_right(&self, bytes: u64) -> bool {
        self.bytes == bytes && self.wrong.is_none()
    }

    /// How long comparing has taken so far, on the wall clock.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// SHA-256 of what came, in lowercase hexadecimal. Of a large body it takes a while.
    pub fn sha256(&self) -> String {
        match &self.wrong {
            Some(wrong) => body::hex(&wrong.hasher.clone().finalize()),
            None => body::sha256(self.seed, self.bytes),
        }
    }
}

/// Which byte of `piece` is not the one of the body of `seed` that belongs there, `piece` being what
/// came from byte `from` on? None: all of them are.
pub fn first_wrong(seed: u64, from: u64, piece: &[u8]) -> Option<usize> {
    // Up to the next whole word, the whole words, and what is left of the last one.
    let lead = (from.wrapping_neg() % 8).min(piece.len() as u64) as usize;
    let (lead, rest) = piece.split_at(lead);
    let (words, tail) = rest.as_chunks::<8>();
    let first_word = from.div_ceil(8);
    let is_right = in_word(seed, from, lead)
        && lanes::same(seed, first_word, words)
        && in_word(seed, from + (piece.len() - tail.len()) as u64, tail);
    (!is_right).then(|| place(seed, from, piece))
}

/// Compares bytes that all are of one word.
fn in_word(seed: u64, from: u64, bytes: &[u8]) -> bool {
    let word = lanes::word(seed, from / 8).to_le_bytes();
    let at = (from % 8) as usize;
    bytes == &word[at..at + bytes.len()]
}

/// The index of the first wrong byte, where there is one.
fn place(seed: u64, from: u64, piece: &[u8]) -> usize {
    let right = |at: u64| lanes::word(seed, at / 8).to_le_bytes()[(at % 8) as usize];
    let mut bytes = piece.iter().zip(from..);
    bytes
        .position(|(byte, at)| *byte != right(at))
        .expect("some byte is wrong")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::whole;

    /// Cuts at places that look random and differ from round to round.
    fn pieces(bytes: &[u8], round: u64) -> Vec<&[u8]> {
        let (mut rest, mut pieces, mut index) = (bytes, Vec::new(), 0);
        while !rest.is_empty() {
            let most = [3, 17, 1000, 70_000][(round % 4) as usize];
            let length = (lanes::word(round, index) as usize % most + 1).min(rest.len());
            let (piece, more) = rest.split_at(length);
            pieces.push(piece);
            (rest, index) = (more, index + 1);
        }
        pieces
    }

    fn taken(seed: u64, bytes: &[u8], round: u64) -> Verifier {
        let mut verifier = Verifier::new(seed);
        for piece in pieces(bytes, round) {
            verifier.take(piece);
        }
        verifier
    }

    #[test]
    fn the_right_body_is_right_however_it_is_cut() {
        for round in 0..60 {
            let bytes = lanes::word(99, round) % 9000;
            let body = whole(round, bytes);
            let verifier = taken(round, &body, round);
            assert!(verifier.is_right(bytes), "round {round}");
            assert_eq!(verifier.first_wrong(), None);
            assert_eq!(verifier.sha256(), body::sha256_of([body.as_slice()]));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_its_place_is_told() {
        let body = whole(5, 203);
        for bit in 0..body.len() * 8 {
            let mut flipped = body.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let verifier = taken(5, &flipped, bit as u64);
            assert!(!verifier.is_right(203));
            assert_eq!(verifier.first_wrong(), Some(bit as u64 / 8));
        }
    }

    #[test]
    fn a_shorter_and_a_longer_body_are_not_right() {
        let body = whole(3, 4097);
        for bytes in [0, 1, 7, 8, 4088, 4095, 4097] {
            assert!(!taken(3, &body[..bytes], 2).is_right(4096));
        }
        let shorter = taken(3, &body[..4095], 2);
        assert_eq!((shorter.bytes(), shorter.first_wrong()), (4095, None));
        assert_eq!(shorter.sha256(), body::sha256_of([&body[..4095]]));
    }

    #[test]
    fn a_swapped_body_is_not_right_and_neither_are_swapped_or_repeated_parts_of_the_right_one() {
        let body = whole(3, 64 * 1024);
        assert!(!taken(4, &body, 2).is_right(body.len() as u64));
        let (first, second) = body.split_at(32 * 1024);
        for wrong in [[second, first], [first, first], [second, second]] {
            let came = wrong.concat();
            let verifier = taken(3, &came, 3);
            assert!(!verifier.is_right(body.len() as u64));
            assert_eq!(verifier.sha256(), body::sha256_of([came.as_slice()]));
        }
    }
}

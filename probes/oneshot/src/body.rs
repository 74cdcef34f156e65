//! The bytes of an object, made from a seed, so that whoever reads it knows what must come back.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) as
//! little-endian words, cut off at the length asked for. A word depends on its index alone, so any
//! part of a body can be made without the part before it; the same few lines are in
//! `probes/body.py`. It does not compress, and it costs far less than a hash ([`crate::lanes`] makes
//! many words at a time).

use std::cell::RefCell;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::lanes;

const BLOCK_BYTES: usize = 64 * 1024;

/// A body up to this length is made before the clock starts, and looked at when it has stopped. A
/// longer one is made and looked at piece by piece as it passes, which is in the time then, and told
/// ([`crate::record::Record`]). Objects of 4 MiB, which studies compare with slightly larger ones, are
/// on the same side of it.
pub const WHOLE_BYTES: u64 = 8 << 20;

/// Writes the bytes of `seed`'s body that begin at word `first_word` (byte 8 × `first_word`).
pub fn fill(seed: u64, first_word: u64, bytes: &mut [u8]) {
    let (words, tail) = bytes.as_chunks_mut::<8>();
    lanes::fill(seed, first_word, words);
    let last = lanes::word(seed, first_word.wrapping_add(words.len() as u64)).to_le_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
}

/// The body of `seed`, all of it in memory.
pub fn whole(seed: u64, bytes: u64) -> Vec<u8> {
    let mut whole = vec![0; bytes as usize];
    fill(seed, 0, &mut whole);
    whole
}

/// Calls `each` with the body's bytes in order, a block at a time: a body of any size in one block
/// of memory.
pub fn for_each_block<E>(
    seed: u64,
    bytes: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut block = [0u8; BLOCK_BYTES];
    let mut done = 0u64;
    while done < bytes {
        let length = (bytes - done).min(BLOCK_BYTES as u64) as usize;
        fill(seed, done / 8, &mut block[..length]);
        each(&block[..length])?;
        done += length as u64;
    }
    Ok(())
}

thread_local! {
    /// The hashes of large bodies that were told before.
    static TOLD: RefCell<HashMap<(u64, u64), String>> = RefCell::default();
}
const MOST_TOLD: usize = 1000;

/// SHA-256 of the body, in lowercase hexadecimal.
///
/// Of a large body it is computed once, however often it is asked for: large objects are few, and
/// read again and again, and while one is hashed the connection idles, and TCP forgets its window.
pub fn sha256(seed: u64, bytes: u64) -> String {
    if bytes <= WHOLE_BYTES {
        return hex(&hasher(seed, bytes).finalize());
    }
    TOLD.with_borrow_mut(|told| {
        if told.len() == MOST_TOLD {
            told.clear();
        }
        let hash = || hex(&hasher(seed, bytes).finalize());
        told.entry((seed, bytes)).or_insert_with(hash).clone()
    })
}

/// SHA-256 that has seen the body.
pub fn hasher(seed: u64, bytes: u64) -> Sha256 {
    let mut hasher = Sha256::new();
    let infallible: Result<(), std::convert::Infallible> = for_each_block(seed, bytes, |block| {
        hasher.update(block);
        Ok(())
    });
    let Ok(()) = infallible;
    hasher
}

/// SHA-256 of the bytes of `parts` one after the other, in lowercase hexadecimal.
pub fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// In lowercase hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_that_was_told_before_is_that_of_its_body() {
        let bytes = WHOLE_BYTES + 5;
        let hash = |seed, bytes| sha256_of([whole(seed, bytes).as_slice()]);
        for _ in 0..2 {
            for (seed, bytes) in [(1, bytes), (2, bytes), (1, bytes + 1)] {
                assert_eq!(sha256(seed, bytes), hash(seed, bytes));
            }
        }
    }

    #[test]
    fn words_are_those_of_the_published_splitmix64() {
        // The reference sequence for seed 1234567 that implementations check themselves against.
        let expected: [u64; 5] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (chunk, word) in whole(1_234_567, 40).chunks(8).zip(expected) {
            assert_eq!(u64::from_le_bytes(chunk.try_into().unwrap()), word);
        }
    }

    #[test]
    fn blocks_joined_are_the_body_and_hash_alike() {
        let bytes = 3 * BLOCK_BYTES as u64 + 13;
        let whole = whole(42, bytes);
        let mut joined = Vec::new();
        for_each_block(42, bytes, |block| {
            joined.extend_from_slice(block);
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!(joined, whole);
        assert_eq!(sha256(42, bytes), sha256_of([whole.as_slice()]));
    }
}

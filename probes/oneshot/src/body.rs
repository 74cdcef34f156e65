//! The bytes of an object, made from a seed, so that whoever reads it knows what must come back.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) as
//! little-endian words, cut off at the length asked for. A word depends on its index alone, so any
//! part of a body can be made without the part before it; the same few lines are in
//! `probes/body.py`. It does not compress, and it costs far less than a hash.

use sha2::{Digest, Sha256};

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
const BLOCK_BYTES: usize = 64 * 1024;

fn word(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(GAMMA.wrapping_mul(index.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Writes the bytes of `seed`'s body that begin at word `first_word` (byte 8 × `first_word`).
pub fn fill(seed: u64, first_word: u64, bytes: &mut [u8]) {
    let mut index = first_word;
    let mut words = bytes.chunks_exact_mut(8);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(seed, index).to_le_bytes());
        index += 1;
    }
    let tail = words.into_remainder();
    let last = word(seed, index).to_le_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
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

/// SHA-256 of the body, in lowercase hexadecimal.
pub fn sha256(seed: u64, bytes: u64) -> String {
    let mut hasher = Sha256::new();
    let infallible: Result<(), std::convert::Infallible> = for_each_block(seed, bytes, |block| {
        hasher.update(block);
        Ok(())
    });
    let Ok(()) = infallible;
    hex(&hasher.finalize())
}

/// SHA-256 of the bytes of `parts` one after the other, in lowercase hexadecimal.
pub fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut bytes = [0u8; 40];
        fill(1_234_567, 0, &mut bytes);
        for (chunk, word) in bytes.chunks(8).zip(expected) {
            assert_eq!(u64::from_le_bytes(chunk.try_into().unwrap()), word);
        }
    }

    #[test]
    fn a_shorter_body_is_the_beginning_of_a_longer_one() {
        let mut long = [0u8; 64];
        fill(7, 0, &mut long);
        for length in 0..64 {
            let mut short = vec![0u8; length];
            fill(7, 0, &mut short);
            assert_eq!(short, long[..length]);
        }
    }

    #[test]
    fn blocks_joined_are_the_body_and_hash_alike() {
        let bytes = 3 * BLOCK_BYTES as u64 + 13;
        let mut whole = vec![0u8; bytes as usize];
        fill(42, 0, &mut whole);
        let mut joined = Vec::new();
        for_each_block(42, bytes, |block| {
            joined.extend_from_slice(block);
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!(joined, whole);
        assert_eq!(sha256(42, bytes), sha256_of([whole.as_slice()]));
    }

    #[test]
    fn another_seed_is_another_body() {
        assert_ne!(sha256(1, 1024), sha256(2, 1024));
    }

    #[test]
    fn sha256_of_nothing_is_the_published_one() {
        // FIPS 180-4's empty message.
        assert_eq!(
            sha256(9, 0),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}

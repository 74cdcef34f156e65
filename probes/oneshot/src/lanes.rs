//! SplitMix64's words, many at a time: made, or compared with what came.
//!
//! The loops are plain ones, compiled once for each kind of vectors that a machine may have and
//! chosen when the program runs. What matters is the 64-bit multiplication: AVX-512 has it as one
//! instruction, AVX2 needs three, and nothing older is worth a loop of its own.
//! `benchmarks/verify` says what that comes to.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Word `index` of the body of `seed`.
#[inline(always)]
pub fn word(seed: u64, index: u64) -> u64 {
    mixed(state(seed, index))
}

#[inline(always)]
fn state(seed: u64, index: u64) -> u64 {
    seed.wrapping_add(GAMMA.wrapping_mul(index.wrapping_add(1)))
}

#[inline(always)]
fn mixed(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[inline(always)]
fn make(state: u64, words: &mut [[u8; 8]]) {
    for (index, into) in words.iter_mut().enumerate() {
        *into = mixed(state.wrapping_add(GAMMA.wrapping_mul(index as u64))).to_le_bytes();
    }
}

/// No branch in the loop, so that it becomes one over vectors.
#[inline(always)]
fn compare(state: u64, words: &[[u8; 8]]) -> bool {
    let mut different = 0;
    for (index, came) in words.iter().enumerate() {
        let right = mixed(state.wrapping_add(GAMMA.wrapping_mul(index as u64)));
        different |= u64::from_le_bytes(*came) ^ right;
    }
    different == 0
}

/// Writes the words of `seed` that begin at `first_word`.
pub fn fill(seed: u64, first_word: u64, words: &mut [[u8; 8]]) {
    let state = state(seed, first_word);
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the machine has these instructions.
            return unsafe { x86::make_512(state, words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { x86::make_256(state, words) };
        }
    }
    make(state, words);
}

/// Are these the words of `seed` that begin at `first_word`, every bit of them?
pub fn same(seed: u64, first_word: u64, words: &[[u8; 8]]) -> bool {
    let state = state(seed, first_word);
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the machine has these instructions.
            return unsafe { x86::compare_512(state, words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { x86::compare_256(state, words) };
        }
    }
    compare(state, words)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    pub fn make_512(state: u64, words: &mut [[u8; 8]]) {
        super::make(state, words);
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    pub fn compare_512(state: u64, words: &[[u8; 8]]) -> bool {
        super::compare(state, words)
    }

    #[target_feature(enable = "avx2")]
    pub fn make_256(state: u64, words: &mut [[u8; 8]]) {
        super::make(state, words);
    }

    #[target_feature(enable = "avx2")]
    pub fn compare_256(state: u64, words: &[[u8; 8]]) -> bool {
        super::compare(state, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way that this machine can go makes and knows the same words.
    #[test]
    fn all_ways_agree() {
        let mut plain = vec![[0u8; 8]; 1000];
        let mut chosen = plain.clone();
        for (seed, first) in [(0, 0), (7, 1), (u64::MAX, 12_345), (3, u64::MAX - 10)] {
            make(state(seed, first), &mut plain);
            fill(seed, first, &mut chosen);
            assert_eq!(plain, chosen);
            assert!(same(seed, first, &plain) && compare(state(seed, first), &plain));
            assert_eq!(
                plain[999],
                word(seed, first.wrapping_add(999)).to_le_bytes()
            );
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the machine has it.
                unsafe {
                    x86::make_256(state(seed, first), &mut chosen);
                    assert!(x86::compare_256(state(seed, first), &plain));
                }
                assert_eq!(plain, chosen);
            }
        }
    }
}

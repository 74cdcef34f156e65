//! Memory for held frames: recycled, bounded, in four sizes.
//!
//! In steady state no frame costs an allocation. The sizes keep an acknowledgement of 66 bytes
//! from occupying the 64 KiB that an offloaded segment needs.

use crate::frame::LONGEST_MESSAGE_BYTES;

/// Sizes of buffers. The largest takes any message.
pub const SIZES: [usize; 4] = [256, 2_048, 16_384, LARGEST_BYTES];

/// [`LONGEST_MESSAGE_BYTES`], rounded up to whole cache lines.
pub const LARGEST_BYTES: usize = LONGEST_MESSAGE_BYTES.next_multiple_of(64);

/// Of the memory limit, the part that may lie idle in the free lists; what exceeds it goes back
/// to the allocator.
const IDLE_SHARE: u64 = 4;

/// Hands out buffers up to a limit and takes them back.
#[derive(Debug)]
pub struct BufferPool {
    free: [Vec<Box<[u8]>>; SIZES.len()],
    held_bytes: u64,
    idle_bytes: u64,
    limit_bytes: u64,
}

impl BufferPool {
    /// A pool that has at most `limit_bytes` out at a time.
    pub fn new(limit_bytes: u64) -> BufferPool {
        BufferPool {
            free: Default::default(),
            held_bytes: 0,
            idle_bytes: 0,
            limit_bytes,
        }
    }

    /// A buffer for `length` bytes, of the smallest size that fits; `None` when the limit is
    /// reached or nothing fits. What is in it is left over from its last use.
    pub fn take(&mut self, length: usize) -> Option<Box<[u8]>> {
        let class = SIZES.iter().position(|&size| length <= size)?;
        let bytes = SIZES[class] as u64;
        if self.held_bytes + bytes > self.limit_bytes {
            return None;
        }
        self.held_bytes += bytes;
        match self.free[class].pop() {
            Some(buffer) => {
                self.idle_bytes -= bytes;
                Some(buffer)
            }
            None => Some(vec![0; SIZES[class]].into_boxed_slice()),
        }
    }

    /// Whether a message of this length is kept in the largest size, so that a received buffer
    /// is best kept as it is instead of being copied.
    pub fn is_large(length: usize) -> bool {
        length > SIZES[SIZES.len() - 2]
    }

    /// Takes back a buffer that [`BufferPool::take`] gave.
    ///
    /// # Panics
    /// If its length is none of [`SIZES`].
    pub fn give_back(&mut self, buffer: Box<[u8]>) {
        let class = SIZES
            .iter()
            .position(|&size| buffer.len() == size)
            .expect("a buffer of this pool");
        let bytes = buffer.len() as u64;
        self.held_bytes -= bytes;
        if self.idle_bytes + bytes <= self.limit_bytes / IDLE_SHARE {
            self.idle_bytes += bytes;
            self.free[class].push(buffer);
        }
    }

    /// Bytes of all buffers that are out.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_gets_the_smallest_buffer_that_holds_it() {
        let mut pool = BufferPool::new(1 << 30);
        for (length, size) in [
            (0, 256),
            (256, 256),
            (257, 2_048),
            (1_524, 2_048),
            (9_024, 16_384),
        ] {
            assert_eq!(pool.take(length).unwrap().len(), size);
        }
        assert!(pool.take(LONGEST_MESSAGE_BYTES).unwrap().len() >= LONGEST_MESSAGE_BYTES);
        assert!(pool.take(LARGEST_BYTES + 1).is_none());
    }

    #[test]
    fn a_buffer_given_back_is_the_next_one_taken() {
        let mut pool = BufferPool::new(1 << 20);
        let buffer = pool.take(100).unwrap();
        let address = buffer.as_ptr();
        pool.give_back(buffer);
        let again = pool.take(100).unwrap();
        assert_eq!(again.as_ptr(), address);
    }

    #[test]
    fn the_limit_holds_and_frees_up_again() {
        let mut pool = BufferPool::new(600);
        let first = pool.take(100).unwrap();
        let _second = pool.take(100).unwrap();
        assert!(pool.take(100).is_none());
        assert_eq!(pool.held_bytes(), 512);
        pool.give_back(first);
        assert!(pool.take(100).is_some());
    }

    #[test]
    fn idle_memory_is_a_part_of_the_limit_at_most() {
        let mut pool = BufferPool::new(4_096);
        let all: Vec<_> = std::iter::from_fn(|| pool.take(200)).collect();
        assert_eq!(all.len(), 16);
        for buffer in all {
            pool.give_back(buffer);
        }
        assert_eq!(pool.held_bytes(), 0);
        assert_eq!(pool.idle_bytes, 1_024);
        assert_eq!(pool.free[0].len(), 4);
    }
}

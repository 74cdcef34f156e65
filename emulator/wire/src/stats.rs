//! What happened in one direction, counted.

use serde::{Serialize, Serializer};

/// Buckets for each power of two: the upper bound of a bucket is at most 1/16 above its values.
const BUCKETS_PER_OCTAVE: usize = 16;
const SUB_BITS: u32 = BUCKETS_PER_OCTAVE.trailing_zeros();
/// Up to 2³⁶ ns, more than a minute; what is later still counts as that late.
const OCTAVES: usize = 33;

/// Lateness of frames, in buckets whose width grows with the value.
#[derive(Debug, Clone)]
pub struct LatenessHistogram {
    counts: Box<[u32; OCTAVES * BUCKETS_PER_OCTAVE]>,
    total: u64,
    largest_ns: u64,
}

impl LatenessHistogram {
    /// A histogram of nothing.
    pub fn new() -> LatenessHistogram {
        LatenessHistogram {
            counts: Box::new([0; OCTAVES * BUCKETS_PER_OCTAVE]),
            total: 0,
            largest_ns: 0,
        }
    }

    /// Counts one value.
    pub fn record(&mut self, late_ns: u64) {
        let count = &mut self.counts[bucket_of(late_ns)];
        *count = count.saturating_add(1);
        self.total += 1;
        self.largest_ns = self.largest_ns.max(late_ns);
    }

    /// The value that a part `quantile` of all values does not exceed, rounded up to the end of
    /// its bucket (1/16) and never above the largest. 0 while nothing was recorded.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return bucket_end_ns(bucket).min(self.largest_ns);
            }
        }
        self.largest_ns
    }

    /// The largest value, exactly.
    pub fn largest_ns(&self) -> u64 {
        self.largest_ns
    }
}

impl Default for LatenessHistogram {
    fn default() -> LatenessHistogram {
        LatenessHistogram::new()
    }
}

/// Below 16 every value has its own bucket; above, the bits after the leading one choose.
fn bucket_of(value: u64) -> usize {
    if value < BUCKETS_PER_OCTAVE as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    let within = (value >> shift) as usize - BUCKETS_PER_OCTAVE;
    let bucket = (shift as usize + 1) * BUCKETS_PER_OCTAVE + within;
    bucket.min(OCTAVES * BUCKETS_PER_OCTAVE - 1)
}

/// The largest value of a bucket.
fn bucket_end_ns(bucket: usize) -> u64 {
    if bucket < BUCKETS_PER_OCTAVE {
        return bucket as u64;
    }
    let shift = bucket / BUCKETS_PER_OCTAVE - 1;
    let within = (bucket % BUCKETS_PER_OCTAVE + BUCKETS_PER_OCTAVE) as u64;
    ((within + 1) << shift) - 1
}

/// What `stats` answers of it.
#[derive(Serialize)]
#[allow(clippy::struct_field_names)] // They are keys of the protocol.
struct Lateness {
    late_ns_p50: u64,
    late_ns_p99: u64,
    late_ns_max: u64,
}

impl Serialize for LatenessHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = Lateness {
            late_ns_p50: self.quantile_ns(0.50),
            late_ns_p99: self.quantile_ns(0.99),
            late_ns_max: self.largest_ns(),
        };
        told.serialize(serializer)
    }
}

/// Counters of one direction. At any instant, every frame that was received, and every one that
/// was `duplicated`, is in exactly one of `packets`, `lost`, `queue_drops`, `memory_drops`,
/// `receive_errors`, `send_errors` and `held`; `rx_drops` were never received.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counters {
    /// Frames read from the interface.
    pub received: u64,
    /// Frames sent.
    pub packets: u64,
    /// Bytes of the frames sent, Ethernet header included.
    pub bytes: u64,
    /// Lost as asked.
    pub lost: u64,
    /// Second copies that were made.
    pub duplicated: u64,
    /// Left at once, ahead of those on their way.
    pub overtaken: u64,
    /// Found the transmission queue full.
    pub queue_drops: u64,
    /// Found the memory for held frames used up.
    pub memory_drops: u64,
    /// Could not be read whole: longer than a frame can be, or of an unknown kind of offload.
    pub receive_errors: u64,
    /// The kernel did not take them: the interface was down or its queue full for too long.
    pub send_errors: u64,
    /// Dropped by the kernel because our receive buffer was full.
    pub rx_drops: u64,
    /// On their way.
    pub held: u64,
    /// Departure minus due instant of every frame sent.
    #[serde(flatten)]
    pub late: LatenessHistogram,
}

impl Counters {
    /// Counts a frame that was sent, so much later than it was due.
    pub fn sent(&mut self, frame_bytes: usize, late_ns: u64) {
        self.packets += 1;
        self.bytes += frame_bytes as u64;
        self.late.record(late_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap_and_are_a_sixteenth_wide_at_most() {
        let mut start = 0;
        for bucket in 0..OCTAVES * BUCKETS_PER_OCTAVE {
            let end = bucket_end_ns(bucket);
            assert_eq!((bucket_of(start), bucket_of(end)), (bucket, bucket));
            assert!(end - start <= start / 16, "{start} {end}");
            start = end + 1;
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = LatenessHistogram::new();
        for value in 1..=10_000 {
            histogram.record(value);
        }
        for (quantile, exact) in [(0.5, 5_000), (0.99, 9_900)] {
            let found = histogram.quantile_ns(quantile);
            assert!(
                (exact..=exact + exact / 16).contains(&found),
                "{quantile} {found}"
            );
        }
        assert_eq!(histogram.largest_ns(), 10_000);
        assert_eq!(histogram.quantile_ns(1.0), 10_000);
    }

    #[test]
    fn the_extremes_are_counted_too() {
        let mut histogram = LatenessHistogram::new();
        assert_eq!(histogram.quantile_ns(0.5), 0);
        histogram.record(0);
        assert_eq!(histogram.quantile_ns(0.5), 0);
        histogram.record(u64::MAX);
        assert_eq!(histogram.largest_ns(), u64::MAX);
    }
}

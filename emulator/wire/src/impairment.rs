//! What a direction of a link does to frames: the request, its check, and the draws.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// One hour: longer delays are typing errors.
const LONGEST_DELAY_NS: u64 = 3_600_000_000_000;

/// A transmission queue that nobody gave a size is at least this large.
const SMALLEST_DEFAULT_QUEUE_BYTES: u64 = 64 << 10;

/// What one direction of a link does to frames. Everything absent means: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Impairment {
    /// Every frame is delayed by this ± [`Impairment::jitter_ns`].
    pub delay_ns: u64,
    /// Half the width of the uniform distribution of the delay.
    pub jitter_ns: u64,
    /// Whether frames of one flow may overtake each other.
    pub reorder: bool,
    /// Probability of losing a frame, 0 to 1.
    pub loss: f64,
    /// Bits a second; `None` is no limit.
    pub rate_bps: Option<u64>,
    /// Bytes that wait for transmission at most, where there is a rate.
    pub queue_bytes: Option<u64>,
}

impl Impairment {
    /// Says what is wrong, if something is.
    pub fn check(&self) -> Result<(), String> {
        if self.delay_ns > LONGEST_DELAY_NS {
            return Err(format!(
                "delay_ns is {}; at most one hour ({LONGEST_DELAY_NS}) is allowed",
                self.delay_ns
            ));
        }
        if self.jitter_ns > self.delay_ns {
            return Err(format!(
                "jitter_ns is {}, more than delay_ns, which is {}; a delay cannot be negative",
                self.jitter_ns, self.delay_ns
            ));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(format!("loss is {}; 0 to 1 is allowed", self.loss));
        }
        if self.rate_bps == Some(0) {
            return Err("rate_bps is 0; leave it out for no limit, or use loss 1".into());
        }
        if self.queue_bytes == Some(0) {
            return Err("queue_bytes is 0; at least 1 is allowed".into());
        }
        Ok(())
    }

    /// The queue limit in force for a rate: the one that was asked for, or else what the link
    /// carries during its delay (rate × delay), and 64 KiB at least.
    pub fn queue_limit_bytes(&self, rate_bps: u64) -> u64 {
        self.queue_bytes.unwrap_or_else(|| {
            let in_flight_bytes =
                u128::from(rate_bps) * u128::from(self.delay_ns) / 8 / 1_000_000_000;
            u64::try_from(in_flight_bytes)
                .unwrap_or(u64::MAX)
                .max(SMALLEST_DEFAULT_QUEUE_BYTES)
        })
    }
}

/// The random numbers of one direction. Loss and jitter draw from streams of their own, so that
/// switching one on does not change the other.
#[derive(Debug, Clone)]
pub struct Draws {
    jitter: Xoshiro256PlusPlus,
    loss: Xoshiro256PlusPlus,
}

impl Draws {
    /// The draws of each of `directions` directions: from one seed, but in parts of the
    /// generator's period that do not overlap (2¹²⁸ draws each).
    pub fn for_directions(seed: u64, directions: usize) -> Vec<Draws> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut next = || {
            generator.jump();
            generator.clone()
        };
        (0..directions)
            .map(|_| Draws {
                jitter: next(),
                loss: next(),
            })
            .collect()
    }

    /// A delay for one frame: uniform over every nanosecond of delay ± jitter.
    pub fn delay_ns(&mut self, impairment: &Impairment) -> u64 {
        if impairment.jitter_ns == 0 {
            return impairment.delay_ns;
        }
        let width = 2 * impairment.jitter_ns + 1;
        // Multiply and shift (Lemire 2019, arXiv:1805.10941) without its rejection step: the
        // bias is at most width / 2⁶⁴, below one in a million even for an hour.
        let offset = (u128::from(self.jitter.next_u64()) * u128::from(width)) >> 64;
        impairment.delay_ns - impairment.jitter_ns + offset as u64
    }

    /// Whether one frame is lost.
    pub fn is_lost(&mut self, impairment: &Impairment) -> bool {
        if impairment.loss <= 0.0 {
            return false;
        }
        // 53 random bits: a float in [0, 1), so that loss 1 loses everything.
        let draw = (self.loss.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        draw < impairment.loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64) -> Draws {
        Draws::for_directions(seed, 1).remove(0)
    }

    fn jittered() -> Impairment {
        Impairment {
            delay_ns: 50_000_000,
            jitter_ns: 10_000_000,
            ..Impairment::default()
        }
    }

    /// Kolmogorov–Smirnov distance between sorted samples and the uniform distribution.
    fn distance_from_uniform(sorted: &[f64]) -> f64 {
        let n = sorted.len() as f64;
        sorted
            .iter()
            .enumerate()
            .map(|(i, &x)| {
                (x - i as f64 / n)
                    .abs()
                    .max((x - (i as f64 + 1.0) / n).abs())
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn jitter_is_uniform_over_delay_plus_minus_jitter() {
        let (mut draws, jittered) = (draws(1), jittered());
        let n = 100_000;
        let mut samples: Vec<f64> = (0..n)
            .map(|_| draws.delay_ns(&jittered))
            .inspect(|delay_ns| assert!((40_000_000..=60_000_000).contains(delay_ns)))
            .map(|delay_ns| (delay_ns - 40_000_000) as f64 / 20_000_000.0)
            .collect();
        samples.sort_by(f64::total_cmp);
        // The 99.9 % point of Kolmogorov's distribution is 1.95 / √n.
        assert!(distance_from_uniform(&samples) < 1.95 / f64::from(n).sqrt());
    }

    #[test]
    fn the_smallest_jitter_takes_all_its_three_values() {
        let mut draws = draws(1);
        let impairment = Impairment {
            delay_ns: 1,
            jitter_ns: 1,
            ..Impairment::default()
        };
        let mut seen = [0; 3];
        for _ in 0..3_000 {
            seen[draws.delay_ns(&impairment) as usize] += 1;
        }
        // Binomial(3000, 1/3): mean 1000, deviation 26.
        assert!(
            seen.iter().all(|count| (880..1120).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn without_jitter_the_delay_is_exact() {
        let impairment = Impairment {
            delay_ns: 123,
            ..Impairment::default()
        };
        assert_eq!(draws(1).delay_ns(&impairment), 123);
    }

    #[test]
    fn loss_is_as_frequent_as_asked() {
        let mut draws = draws(7);
        let impairment = Impairment {
            loss: 0.01,
            ..Impairment::default()
        };
        let lost = (0..1_000_000)
            .filter(|_| draws.is_lost(&impairment))
            .count();
        // Binomial(10⁶, 0.01): mean 10⁴, deviation 99.5; five deviations.
        assert!((9_500..10_500).contains(&lost), "{lost}");
    }

    #[test]
    fn loss_0_loses_nothing_and_loss_1_everything() {
        let mut draws = draws(7);
        let always = Impairment {
            loss: 1.0,
            ..Impairment::default()
        };
        assert!((0..100_000).all(|_| draws.is_lost(&always)));
        assert!((0..100_000).all(|_| !draws.is_lost(&Impairment::default())));
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_seed_does_not() {
        let sequence = |seed| {
            let mut draws = draws(seed);
            (0..100)
                .map(|_| draws.delay_ns(&jittered()))
                .collect::<Vec<_>>()
        };
        assert_eq!(sequence(5), sequence(5));
        assert_ne!(sequence(5), sequence(6));
    }

    #[test]
    fn directions_draw_independently() {
        let mut directions = Draws::for_directions(3, 40);
        let n = 2_000;
        let samples: Vec<Vec<f64>> = directions
            .iter_mut()
            .map(|draws| {
                (0..n)
                    .map(|_| draws.delay_ns(&jittered()) as f64 / 1e7 - 5.0)
                    .collect()
            })
            .collect();
        for i in 0..samples.len() {
            for j in 0..i {
                let products = samples[i].iter().zip(&samples[j]).map(|(x, y)| x * y);
                // Both uniform in ±1 with variance 1/3: the correlation has deviation 1/√n.
                let correlation = products.sum::<f64>() / f64::from(n) * 3.0;
                assert!(
                    correlation.abs() < 5.0 / f64::from(n).sqrt(),
                    "{i} {j} {correlation}"
                );
            }
        }
    }

    #[test]
    fn switching_loss_on_leaves_the_jitter_as_it_was() {
        let (mut with_loss, mut without) = (draws(9), draws(9));
        let lossy = Impairment {
            loss: 0.5,
            ..jittered()
        };
        for _ in 0..100 {
            with_loss.is_lost(&lossy);
            assert_eq!(with_loss.delay_ns(&lossy), without.delay_ns(&jittered()));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        let wrong = [
            (
                Impairment {
                    delay_ns: u64::MAX,
                    ..Impairment::default()
                },
                "delay_ns",
            ),
            (
                Impairment {
                    jitter_ns: 1,
                    ..Impairment::default()
                },
                "jitter_ns",
            ),
            (
                Impairment {
                    loss: 1.01,
                    ..Impairment::default()
                },
                "loss",
            ),
            (
                Impairment {
                    loss: -0.1,
                    ..Impairment::default()
                },
                "loss",
            ),
            (
                Impairment {
                    loss: f64::NAN,
                    ..Impairment::default()
                },
                "loss",
            ),
            (
                Impairment {
                    rate_bps: Some(0),
                    ..Impairment::default()
                },
                "rate_bps",
            ),
            (
                Impairment {
                    queue_bytes: Some(0),
                    ..Impairment::default()
                },
                "queue_bytes",
            ),
        ];
        for (impairment, name) in wrong {
            assert!(impairment.check().unwrap_err().contains(name));
        }
        assert_eq!(jittered().check(), Ok(()));
    }

    #[test]
    fn a_queue_without_a_size_holds_what_the_link_carries_but_64_kib_at_least() {
        let impairment = Impairment {
            delay_ns: 50_000_000,
            ..Impairment::default()
        };
        assert_eq!(impairment.queue_limit_bytes(1_000_000_000), 6_250_000);
        assert_eq!(impairment.queue_limit_bytes(1_000_000), 65_536);
        let asked = Impairment {
            queue_bytes: Some(1_000),
            ..impairment
        };
        assert_eq!(asked.queue_limit_bytes(1_000_000_000), 1_000);
    }
}

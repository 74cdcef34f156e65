//! The random numbers of one direction.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::impairment::Impairment;

/// What chance decides in one direction.
///
/// Everything draws from a stream of its own, so that switching one impairment on leaves the
/// draws of the others as they were. The second copy of a duplicated frame has streams of its
/// own too.
#[derive(Debug, Clone)]
pub struct Draws {
    loss: Loss,
    duplicate: Stream,
    /// What happens to a frame on its way.
    pub own: PassageDraws,
    /// What happens to its second copy.
    pub copy: PassageDraws,
}

/// What chance decides about one copy of a frame on its way.
#[derive(Debug, Clone)]
pub struct PassageDraws {
    delay: Stream,
    overtake: Stream,
}

impl Draws {
    /// The draws of each of `directions` directions: from one seed, but in parts of the
    /// generator's period that do not overlap (2¹⁹² draws for each direction, 2¹²⁸ for each
    /// stream).
    pub fn for_directions(seed: u64, directions: usize) -> Vec<Draws> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..directions)
            .map(|_| {
                generator.long_jump();
                Draws::new(generator.clone())
            })
            .collect()
    }

    fn new(mut generator: Xoshiro256PlusPlus) -> Draws {
        let mut next = || {
            generator.jump();
            Stream(generator.clone())
        };
        let loss = Loss::new(next());
        let duplicate = next();
        let mut passage = || PassageDraws {
            delay: next(),
            overtake: next(),
        };
        Draws {
            loss,
            duplicate,
            own: passage(),
            copy: passage(),
        }
    }

    /// Whether one frame is lost.
    pub fn is_lost(&mut self, impairment: &Impairment) -> bool {
        self.loss.draw(impairment)
    }

    /// Whether a second copy of one frame is sent.
    pub fn is_duplicated(&mut self, impairment: &Impairment) -> bool {
        self.duplicate.chance(impairment.duplicate)
    }
}

impl PassageDraws {
    /// Whether one frame leaves at once. Without a delay there is nothing to overtake.
    pub fn overtakes(&mut self, impairment: &Impairment) -> bool {
        impairment.delay_ns > 0 && self.overtake.chance(impairment.overtake)
    }

    /// The delay of one frame.
    pub fn delay_ns(&mut self, impairment: &Impairment) -> u64 {
        let &Impairment {
            delay_ns,
            jitter_ns,
            ..
        } = impairment;
        if jitter_ns == 0 {
            return delay_ns;
        }
        let Some(shape) = &impairment.shape else {
            // Every nanosecond of delay ± jitter is as probable as every other.
            return (delay_ns + self.delay.below(2 * jitter_ns + 1)).saturating_sub(jitter_ns);
        };
        let draw = shape.quantile(self.delay.unit());
        // A conversion to an unsigned number ends at 0: the check forgives a little rounding.
        (delay_ns as f64 + jitter_ns as f64 * draw).round() as u64
    }
}

/// One sequence of random numbers.
#[derive(Debug, Clone)]
struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Evenly in [0, 1), in steps of 2⁻⁵³.
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability: never for 0, always for 1.
    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Evenly one of `bound` whole numbers. Multiply and shift (Lemire 2019, arXiv:1805.10941)
    /// without its rejection step: the bias is at most bound / 2⁶⁴, below one in a million even
    /// for an hour of nanoseconds.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Loss, one by one or in bursts.
#[derive(Debug, Clone)]
struct Loss {
    stream: Stream,
    /// The state of the Gilbert-Elliott chain.
    bad: bool,
}

impl Loss {
    fn new(stream: Stream) -> Loss {
        Loss { stream, bad: false }
    }

    /// As in `sch_netem`, a frame meets the state that the chain is in, which then takes a step.
    fn draw(&mut self, impairment: &Impairment) -> bool {
        let Some(bursts) = impairment.bursts else {
            self.bad = false;
            return self.stream.chance(impairment.loss);
        };
        let (pass, step) = if self.bad {
            (bursts.h, bursts.r)
        } else {
            (bursts.k, bursts.p)
        };
        let lost = !self.stream.chance(pass);
        self.bad ^= self.stream.chance(step);
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::impairment::GilbertElliott;
    use crate::shape::Shape;

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

    /// 4096 quantiles of Pareto's distribution with the exponent 3, standardised.
    fn pareto() -> Impairment {
        let raw: Vec<f64> = (0..4096)
            .map(|i| (1.0 - (f64::from(i) + 0.5) / 4096.0).powf(-1.0 / 3.0))
            .collect();
        let mean = raw.iter().sum::<f64>() / 4096.0;
        let variance = raw.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4096.0;
        let values = raw.iter().map(|x| (x - mean) / variance.sqrt()).collect();
        Impairment {
            shape: Some(Arc::new(Shape::new(values).unwrap())),
            ..jittered()
        }
    }

    /// Two clusters, far apart.
    fn two_paths() -> Impairment {
        let values = (0..2_000)
            .map(|i| if i < 1_400 { -0.7 } else { 1.5 } + f64::from(i) * 1e-4)
            .collect();
        Impairment {
            shape: Some(Arc::new(Shape::new(values).unwrap())),
            ..jittered()
        }
    }

    fn delays_ns(seed: u64, impairment: &Impairment, n: usize) -> Vec<u64> {
        let mut draws = draws(seed);
        (0..n).map(|_| draws.own.delay_ns(impairment)).collect()
    }

    /// The probability of a delay of at most `delay_ns`, computed from the table by bisection.
    fn probability(impairment: &Impairment, delay_ns: u64) -> f64 {
        let draw = (delay_ns as f64 - impairment.delay_ns as f64) / impairment.jitter_ns as f64;
        let Some(shape) = &impairment.shape else {
            return ((draw + 1.0) / 2.0).clamp(0.0, 1.0);
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if shape.quantile(middle) <= draw {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Kolmogorov–Smirnov distance between delays and the distribution that was asked for.
    fn distance(impairment: &Impairment, delays_ns: &[u64]) -> f64 {
        let mut sorted = delays_ns.to_vec();
        sorted.sort_unstable();
        let n = sorted.len() as f64;
        sorted
            .iter()
            .enumerate()
            .map(|(i, &delay_ns)| {
                let expected = probability(impairment, delay_ns);
                (expected - i as f64 / n)
                    .abs()
                    .max((expected - (i as f64 + 1.0) / n).abs())
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn a_million_delays_of_each_distribution_fit_it() {
        for impairment in [jittered(), pareto(), two_paths()] {
            let delays_ns = delays_ns(1, &impairment, 1_000_000);
            // The 0.1 % point of Kolmogorov's distribution.
            assert!(distance(&impairment, &delays_ns) < 1.95 / 1_000_000f64.sqrt());
        }
    }

    #[test]
    fn the_smallest_jitter_takes_all_its_three_values() {
        let impairment = Impairment {
            delay_ns: 1,
            jitter_ns: 1,
            ..Impairment::default()
        };
        let mut seen = [0; 3];
        for delay_ns in delays_ns(1, &impairment, 3_000) {
            seen[delay_ns as usize] += 1;
        }
        // Binomial(3000, 1/3): mean 1000, deviation 26.
        assert!(
            seen.iter().all(|count| (850..1150).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn without_jitter_the_delay_is_exact() {
        let impairment = Impairment {
            delay_ns: 123,
            ..pareto()
        };
        let impairment = Impairment {
            jitter_ns: 0,
            ..impairment
        };
        assert_eq!(draws(1).own.delay_ns(&impairment), 123);
    }

    #[test]
    fn loss_duplication_and_overtaking_are_as_frequent_as_requested() {
        let impairment = Impairment {
            delay_ns: 1,
            loss: 0.01,
            duplicate: 0.02,
            overtake: 0.04,
            ..Impairment::default()
        };
        let mut draws = draws(7);
        let n = 1_000_000;
        let mut counts = [0; 3];
        for _ in 0..n {
            counts[0] += usize::from(draws.is_lost(&impairment));
            counts[1] += usize::from(draws.is_duplicated(&impairment));
            counts[2] += usize::from(draws.own.overtakes(&impairment));
        }
        for (count, probability) in counts.into_iter().zip([0.01, 0.02, 0.04]) {
            let mean = f64::from(n) * probability;
            let deviation = (mean * (1.0 - probability)).sqrt();
            assert!(
                (count as f64 - mean).abs() < 4.0 * deviation,
                "{count} {probability}"
            );
        }
    }

    #[test]
    fn probability_0_is_never_and_1_is_always() {
        let mut draws = draws(7);
        let always = Impairment {
            delay_ns: 1,
            loss: 1.0,
            duplicate: 1.0,
            overtake: 1.0,
            ..Impairment::default()
        };
        let never = Impairment {
            delay_ns: 1,
            ..Impairment::default()
        };
        for _ in 0..100_000 {
            assert!(draws.is_lost(&always) && !draws.is_lost(&never));
            assert!(draws.is_duplicated(&always) && !draws.is_duplicated(&never));
            assert!(draws.own.overtakes(&always) && !draws.own.overtakes(&never));
        }
    }

    #[test]
    fn bursts_of_loss_have_geometric_lengths_at_both_ends() {
        let bursts = GilbertElliott {
            p: 0.02,
            r: 0.3,
            h: 0.0,
            k: 1.0,
        };
        let impairment = Impairment {
            bursts: Some(bursts),
            ..Impairment::default()
        };
        let mut draws = draws(11);
        let lost: Vec<bool> = (0..2_000_000).map(|_| draws.is_lost(&impairment)).collect();
        let runs: Vec<&[bool]> = lost.chunk_by(|a, b| a == b).collect();
        for (state, leave) in [(true, bursts.r), (false, bursts.p)] {
            let lengths: Vec<usize> = runs[1..runs.len() - 1]
                .iter()
                .filter(|run| run[0] == state)
                .map(|run| run.len())
                .collect();
            // Of the runs that last to a length, a part `leave` ends there: whatever the length.
            for length in [1, 2, 3, 5, 8] {
                let lasting = lengths.iter().filter(|&&l| l >= length).count() as f64;
                let ending = lengths.iter().filter(|&&l| l == length).count() as f64;
                let deviation = (lasting * leave * (1.0 - leave)).sqrt();
                assert!(
                    (ending - lasting * leave).abs() < 4.5 * deviation,
                    "{state} {length}: {ending} of {lasting}"
                );
            }
        }
        let part = lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64;
        assert!((part / (0.02 / 0.32) - 1.0).abs() < 0.03, "{part}");
    }

    #[test]
    fn each_state_of_the_chain_has_its_own_loss() {
        // It leaves the good state at once and for ever.
        let bursts = |h, k| Impairment {
            bursts: Some(GilbertElliott {
                p: 1.0,
                r: 0.0,
                h,
                k,
            }),
            ..Impairment::default()
        };
        let mut draws = draws(1);
        assert!(
            !draws.is_lost(&bursts(0.0, 1.0)),
            "it starts in the good state"
        );
        assert!((0..1_000).all(|_| draws.is_lost(&bursts(0.0, 1.0))));
        let n = 100_000;
        let lost = (0..n).filter(|_| draws.is_lost(&bursts(0.9, 0.0))).count();
        assert!((9_500..10_500).contains(&lost), "{lost}");
        // Switched off and on again, it starts anew.
        assert!(!draws.is_lost(&Impairment::default()));
        assert!(!draws.is_lost(&bursts(0.0, 1.0)));
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_seed_does_not() {
        for impairment in [jittered(), pareto()] {
            let sequence = |seed| delays_ns(seed, &impairment, 100);
            assert_eq!(sequence(5), sequence(5));
            assert_ne!(sequence(5), sequence(6));
        }
    }

    #[test]
    fn directions_and_copies_draw_independently() {
        let n = 2_000;
        let samples: Vec<Vec<f64>> = Draws::for_directions(3, 20)
            .into_iter()
            .flat_map(|draws| [draws.own, draws.copy])
            .map(|mut draws| {
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
    fn switching_the_others_on_leaves_the_jitter_as_it_was() {
        let (mut with_all, mut without) = (draws(9), draws(9));
        let all = Impairment {
            loss: 0.5,
            duplicate: 0.5,
            overtake: 0.5,
            ..jittered()
        };
        for _ in 0..100 {
            with_all.is_lost(&all);
            if with_all.is_duplicated(&all) {
                with_all.copy.delay_ns(&all);
            }
            with_all.own.overtakes(&all);
            assert_eq!(
                with_all.own.delay_ns(&all),
                without.own.delay_ns(&jittered())
            );
        }
    }
}

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
    delay: Delay,
    overtake: Stream,
    corrupt: Stream,
}

/// A bit that is to be flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flip {
    /// Position of the packet among those that the frame stands for.
    pub packet: usize,
    /// Where in the packet: this part, in units of 2⁻⁶⁴, of its bits come before.
    pub place: u64,
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
            delay: Delay::new(next()),
            overtake: next(),
            corrupt: next(),
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
        self.delay.draw_ns(impairment)
    }

    /// What is corrupted of the `packets` packets that one frame stands for. For most frames
    /// that is nothing, and nothing to allocate.
    pub fn flips(&mut self, impairment: &Impairment, packets: usize) -> Vec<Flip> {
        let mut flips = Vec::new();
        if impairment.corrupt > 0.0 {
            for packet in 0..packets {
                if self.corrupt.chance(impairment.corrupt) {
                    let place = self.corrupt.0.next_u64();
                    flips.push(Flip { packet, place });
                }
            }
        }
        flips
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

    /// From the standard normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
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

    /// As in sch_netem, a frame meets the state that the chain is in, which then takes a step.
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

/// Delays, each on its own or each like the one before.
#[derive(Debug, Clone)]
struct Delay {
    stream: Stream,
    /// The normal score of the last delay, while delays are correlated.
    score: Option<f64>,
}

impl Delay {
    fn new(stream: Stream) -> Delay {
        Delay {
            stream,
            score: None,
        }
    }

    fn draw_ns(&mut self, impairment: &Impairment) -> u64 {
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
            let width = 2 * jitter_ns + 1;
            let offset = match impairment.correlation > 0.0 {
                false => self.stream.below(width),
                true => ((self.rank(impairment) * width as f64) as u64).min(width - 1),
            };
            return (delay_ns + offset).saturating_sub(jitter_ns);
        };
        let draw = shape.quantile(self.rank(impairment));
        // A conversion to an unsigned number ends at 0: the check forgives a little rounding.
        (delay_ns as f64 + jitter_ns as f64 * draw).round() as u64
    }

    /// How large this draw is among all that might be: evenly in 0 to 1.
    ///
    /// Correlated ranks come from a Gaussian copula. The scores are a sequence of normal numbers
    /// of which each is correlated with the one before; their ranks are evenly distributed
    /// whatever the correlation is, so that delays keep their distribution. Normal scores with
    /// the correlation s have ranks with the correlation 6/π asin(s/2) (Pearson 1907), and it is
    /// the ranks that were asked for.
    fn rank(&mut self, impairment: &Impairment) -> f64 {
        if impairment.correlation <= 0.0 {
            self.score = None;
            return self.stream.unit();
        }
        let innovation = self.stream.normal();
        let score = match self.score {
            None => innovation,
            Some(last) => {
                let like = 2.0 * (std::f64::consts::PI / 6.0 * impairment.correlation).sin();
                like * last + (1.0 - like * like).max(0.0).sqrt() * innovation
            }
        };
        self.score = Some(score);
        normal_probability(score)
    }
}

/// The probability that a standard normal number is below `score`.
fn normal_probability(score: f64) -> f64 {
    0.5 * libm::erfc(-score * std::f64::consts::FRAC_1_SQRT_2)
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

    fn correlated(correlation: f64, impairment: Impairment) -> Impairment {
        Impairment {
            correlation,
            ..impairment
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

    /// Rank correlation of each delay with the next: that of their probabilities.
    fn rank_correlation(impairment: &Impairment, delays_ns: &[u64]) -> f64 {
        let ranks: Vec<f64> = delays_ns
            .iter()
            .map(|&delay_ns| probability(impairment, delay_ns) - 0.5)
            .collect();
        let products = ranks.windows(2).map(|pair| pair[0] * pair[1]);
        // An even distribution of width 1 has the variance 1/12.
        products.sum::<f64>() / (ranks.len() - 1) as f64 * 12.0
    }

    #[test]
    fn five_thousand_delays_of_each_distribution_fit_it() {
        for (name, impairment) in [
            ("uniform", jittered()),
            ("pareto", pareto()),
            ("two paths", two_paths()),
        ] {
            for seed in 1..=20 {
                let delays_ns = delays_ns(seed, &impairment, 5_000);
                let distance = distance(&impairment, &delays_ns);
                // The 1 % point of Kolmogorov's distribution is 1.63 / √n, but of sixty tries
                // one would exceed it; at 0.01 / 60 it is 2.17 / √n.
                assert!(
                    distance < 2.17 / 5_000f64.sqrt(),
                    "{name} {seed} {distance}"
                );
            }
        }
    }

    #[test]
    fn a_million_delays_fit_too_so_small_errors_would_show() {
        for impairment in [jittered(), pareto(), two_paths()] {
            let delays_ns = delays_ns(1, &impairment, 1_000_000);
            assert!(distance(&impairment, &delays_ns) < 1.95 / 1_000_000f64.sqrt());
        }
    }

    #[test]
    fn the_jitter_of_a_standardised_table_is_the_standard_deviation() {
        let delays_ns = delays_ns(1, &pareto(), 2_000_000);
        let n = delays_ns.len() as f64;
        let mean_ns = delays_ns.iter().map(|&ns| ns as f64).sum::<f64>() / n;
        let variance = delays_ns
            .iter()
            .map(|&ns| (ns as f64 - mean_ns).powi(2))
            .sum::<f64>()
            / n;
        assert!((mean_ns / 50e6 - 1.0).abs() < 0.001, "{mean_ns}");
        // Interpolation takes a little off where values lie far apart.
        assert!((variance.sqrt() / 10e6 - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn correlation_is_as_asked_and_the_distribution_stays() {
        for impairment in [jittered(), pareto()] {
            for asked in [0.1, 0.25, 0.5, 0.9] {
                let n = 200_000;
                let impairment = correlated(asked, impairment.clone());
                let delays_ns = delays_ns(3, &impairment, n);
                let found = rank_correlation(&impairment, &delays_ns);
                // Five deviations of an estimate from values that are correlated themselves.
                let tolerance = 5.0 * ((1.0 + asked) / (1.0 - asked) / n as f64).sqrt();
                assert!((found - asked).abs() < tolerance, "{asked} {found}");
                // Neighbours tell the same twice: thinned out until they don't, they must fit.
                let thinned: Vec<u64> = delays_ns.iter().step_by(40).copied().collect();
                let distance = distance(&impairment, &thinned);
                assert!(
                    distance < 1.95 / (thinned.len() as f64).sqrt(),
                    "{distance}"
                );
            }
        }
    }

    #[test]
    fn a_correlation_of_1_draws_the_same_again_and_again() {
        let delays_ns = delays_ns(3, &correlated(1.0, pareto()), 100);
        let spread_ns = delays_ns.iter().max().unwrap() - delays_ns.iter().min().unwrap();
        assert!(spread_ns < 10, "{spread_ns}");
    }

    #[test]
    fn without_correlation_neighbours_have_none() {
        let n = 200_000;
        for impairment in [jittered(), pareto()] {
            let delays_ns = delays_ns(3, &impairment, n);
            let found = rank_correlation(&impairment, &delays_ns);
            assert!(found.abs() < 5.0 / (n as f64).sqrt(), "{found}");
        }
    }

    #[test]
    fn the_smallest_jitter_takes_all_its_three_values() {
        for correlation in [0.0, 0.5] {
            let impairment = Impairment {
                delay_ns: 1,
                jitter_ns: 1,
                correlation,
                ..Impairment::default()
            };
            let mut seen = [0; 3];
            for delay_ns in delays_ns(1, &impairment, 3_000) {
                seen[delay_ns as usize] += 1;
            }
            // Binomial(3000, 1/3): mean 1000, deviation 26; correlation makes it about 45.
            assert!(
                seen.iter().all(|count| (800..1200).contains(count)),
                "{seen:?}"
            );
        }
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
    fn loss_duplication_corruption_and_overtaking_are_as_frequent_as_asked() {
        let impairment = Impairment {
            delay_ns: 1,
            loss: 0.01,
            duplicate: 0.02,
            corrupt: 0.03,
            overtake: 0.04,
            ..Impairment::default()
        };
        let mut draws = draws(7);
        let n = 1_000_000;
        let mut counts = [0; 4];
        for _ in 0..n {
            counts[0] += usize::from(draws.is_lost(&impairment));
            counts[1] += usize::from(draws.is_duplicated(&impairment));
            counts[2] += draws.own.flips(&impairment, 1).len();
            counts[3] += usize::from(draws.own.overtakes(&impairment));
        }
        for (count, probability) in counts.into_iter().zip([0.01, 0.02, 0.03, 0.04]) {
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
            corrupt: 1.0,
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
            assert_eq!(draws.own.flips(&always, 3).len(), 3);
            assert!(draws.own.flips(&never, 3).is_empty());
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
        for impairment in [jittered(), pareto(), correlated(0.5, pareto())] {
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
            corrupt: 0.5,
            overtake: 0.5,
            ..jittered()
        };
        for _ in 0..100 {
            with_all.is_lost(&all);
            if with_all.is_duplicated(&all) {
                with_all.copy.delay_ns(&all);
            }
            with_all.own.flips(&all, 3);
            with_all.own.overtakes(&all);
            assert_eq!(
                with_all.own.delay_ns(&all),
                without.own.delay_ns(&jittered())
            );
        }
    }
}

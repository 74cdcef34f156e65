//! The shape of jitter: how far a draw lies from the mean, in units of the jitter.

/// Fewer values have no spread; more need more memory than they add.
const VALUES: std::ops::RangeInclusive<usize> = 2..=65_536;

/// A draw further out than this, in standard deviations, is a typing error.
const FURTHEST_DRAW: f64 = 1e6;

/// Equally probable quantiles of a distribution, in rising order.
///
/// Value `i` of `n` is the quantile at (i + ½) / n. Between two of them draws are spread evenly
/// (linear interpolation), so that delays are as fine as nanoseconds whatever the number of
/// values; below the first and above the last, half a step each, they are that value. That way
/// the mean of the draws is the mean of the values, exactly, and no draw lies outside of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape(Box<[f64]>);

impl Shape {
    /// A shape of these quantiles, or what is wrong with them.
    pub fn new(values: Vec<f64>) -> Result<Shape, String> {
        if !VALUES.contains(&values.len()) {
            return Err(format!(
                "it has {} values; {} to {} are allowed",
                values.len(),
                VALUES.start(),
                VALUES.end()
            ));
        }
        if let Some(position) = values
            .iter()
            .position(|value| value.is_nan() || value.abs() > FURTHEST_DRAW)
        {
            return Err(format!(
                "value {position} is {}; -{FURTHEST_DRAW} to {FURTHEST_DRAW} is allowed",
                values[position]
            ));
        }
        if let Some(position) = (1..values.len()).find(|&i| values[i] < values[i - 1]) {
            return Err(format!("value {position} is below the one before it"));
        }
        Ok(Shape(values.into_boxed_slice()))
    }

    /// The smallest draw.
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// The largest draw.
    pub fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The quantile at `probability`, which is 0 to 1.
    pub fn quantile(&self, probability: f64) -> f64 {
        let last = self.0.len() - 1;
        let position = (probability * self.0.len() as f64 - 0.5).clamp(0.0, last as f64);
        let below = (position as usize).min(last - 1);
        let (low, high) = (self.0[below], self.0[below + 1]);
        low + (high - low) * (position - below as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(values: &[f64]) -> String {
        Shape::new(values.to_vec()).unwrap_err()
    }

    #[test]
    fn quantiles_lie_at_the_middles_of_their_steps_and_on_straight_lines_between() {
        let shape = Shape::new(vec![-1.0, 0.0, 3.0]).unwrap();
        for (probability, value) in [
            (0.0, -1.0),
            (1.0 / 6.0, -1.0),
            (1.0 / 3.0, -0.5),
            (0.5, 0.0),
            (2.0 / 3.0, 1.5),
            (5.0 / 6.0, 3.0),
            (1.0, 3.0),
        ] {
            let found = shape.quantile(probability);
            assert!((found - value).abs() < 1e-12, "{probability}: {found}");
        }
        assert_eq!((shape.least(), shape.most()), (-1.0, 3.0));
    }

    #[test]
    fn the_mean_of_the_draws_is_that_of_the_values() {
        // A tail such as Pareto's, whose end an interpolation from end to end would lose.
        let values: Vec<f64> = (0..4096)
            .map(|i| (1.0 - (f64::from(i) + 0.5) / 4096.0).powf(-1.0 / 3.0))
            .collect();
        let mean = values.iter().sum::<f64>() / 4096.0;
        let shape = Shape::new(values).unwrap();
        let steps = 4096 * 64;
        let drawn = (0..steps)
            .map(|i| shape.quantile((f64::from(i) + 0.5) / f64::from(steps)))
            .sum::<f64>()
            / f64::from(steps);
        assert!((drawn - mean).abs() < 1e-9, "{drawn} {mean}");
    }

    #[test]
    fn what_is_no_list_of_quantiles_is_refused() {
        assert!(error(&[]).contains("0 values"));
        assert!(error(&[1.0]).contains("1 values"));
        assert!(error(&vec![0.0; 65_537]).contains("65537 values"));
        assert!(error(&[0.0, 2.0, 1.0]).contains("value 2"));
        assert!(error(&[0.0, f64::NAN]).contains("value 1"));
        assert!(error(&[f64::NEG_INFINITY, 0.0]).contains("value 0"));
        assert!(error(&[0.0, 1e7]).contains("value 1"));
    }
}

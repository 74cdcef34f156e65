//! What a direction of a link does to frames: the request, and its check.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::shape::Shape;

/// One hour: longer delays are typing errors.
const LONGEST_DELAY_NS: u64 = 3_600_000_000_000;

/// A transmission queue that nobody gave a size is at least this large.
const SMALLEST_DEFAULT_QUEUE_BYTES: u64 = 64 << 10;

/// Who splits a delay into parts rounds each of them: with a table, the smallest draw may fall
/// short of zero by this much, and is zero then.
const ROUNDING_NS: f64 = 2.0;

/// More than this is a mistake of the requester's, and would take gigabytes.
const MOST_TABLES: usize = 1_024;

/// The tables that requests have brought so far, by name.
#[derive(Debug, Default, Clone)]
pub struct Tables(HashMap<String, Arc<Shape>>);

impl Tables {
    /// These tables and more. A name may come again if its values are the same.
    pub fn extended(&self, more: HashMap<String, Vec<f64>>) -> Result<Tables, String> {
        let mut all = self.clone();
        for (name, values) in more {
            let shape = Shape::new(values).map_err(|error| format!("table {name:?}: {error}"))?;
            match all.0.get(&name) {
                Some(known) if **known == shape => {}
                Some(_) => return Err(format!("table {name:?} exists with other values")),
                None => drop(all.0.insert(name, Arc::new(shape))),
            }
        }
        if all.0.len() > MOST_TABLES {
            return Err(format!(
                "{} tables; at most {MOST_TABLES} are allowed",
                all.0.len()
            ));
        }
        Ok(all)
    }
}

/// Loss in bursts (Gilbert-Elliott): a chain of two states that takes one step for every frame.
/// Letters as in Hasslinger and Hohlfeld, "The Gilbert-Elliott Model for Packet Loss in Real Time
/// Services on the Internet" (2008).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of the step from good to bad.
    pub p: f64,
    /// Probability of the step from bad to good.
    pub r: f64,
    /// Probability of passing in the bad state.
    #[serde(default)]
    pub h: f64,
    /// Probability of passing in the good state.
    #[serde(default = "always")]
    pub k: f64,
}

fn always() -> f64 {
    1.0
}

/// What one direction of a link is asked to do to frames. Everything absent means: nothing.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImpairmentRequest {
    /// Every frame is delayed by this + [`ImpairmentRequest::jitter_ns`] × a draw.
    pub delay_ns: u64,
    /// How far a draw of one moves the delay: half the width of the uniform distribution, or the
    /// standard deviation of a standardised table.
    pub jitter_ns: u64,
    /// Name of the table of quantiles from which the draw is; `None` is evenly from -1 to 1.
    pub table: Option<String>,
    /// Rank correlation between the draws of a frame and the next.
    pub correlation: f64,
    /// Whether jitter may let frames of one flow overtake each other.
    pub reorder: bool,
    /// Probability that a frame leaves at once, ahead of those on their way.
    pub overtake: f64,
    /// Probability of losing a frame, 0 to 1.
    pub loss: f64,
    /// Loss in bursts, instead of `loss`.
    pub bursts: Option<GilbertElliott>,
    /// Probability that a second copy of a frame is sent.
    pub duplicate: f64,
    /// Probability that one bit of a frame is flipped.
    pub corrupt: f64,
    /// Bits a second; `None` is no limit.
    pub rate_bps: Option<u64>,
    /// Bytes that wait for transmission at most, where there is a rate.
    pub queue_bytes: Option<u64>,
}

/// What one direction of a link does to frames: a request that has been checked, with its table.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)] // As in the request.
pub struct Impairment {
    pub delay_ns: u64,
    pub jitter_ns: u64,
    /// The table that was named.
    pub shape: Option<Arc<Shape>>,
    pub correlation: f64,
    pub reorder: bool,
    pub overtake: f64,
    pub loss: f64,
    pub bursts: Option<GilbertElliott>,
    pub duplicate: f64,
    pub corrupt: f64,
    pub rate_bps: Option<u64>,
    pub queue_bytes: Option<u64>,
}

impl ImpairmentRequest {
    /// The impairment with its table, or what is wrong with the request.
    pub fn resolve(&self, tables: &Tables) -> Result<Impairment, String> {
        let shape = match &self.table {
            None => None,
            Some(name) => match tables.0.get(name) {
                Some(shape) => Some(Arc::clone(shape)),
                None => return Err(format!("there is no table {name:?}")),
            },
        };
        self.check_delay(shape.as_deref())?;
        self.check_probabilities()?;
        if self.rate_bps == Some(0) {
            return Err("rate_bps is 0; leave it out for no limit, or use loss 1".into());
        }
        if self.queue_bytes == Some(0) {
            return Err("queue_bytes is 0; at least 1 is allowed".into());
        }
        Ok(Impairment {
            delay_ns: self.delay_ns,
            jitter_ns: self.jitter_ns,
            shape,
            correlation: self.correlation,
            reorder: self.reorder,
            overtake: self.overtake,
            loss: self.loss,
            bursts: self.bursts,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            rate_bps: self.rate_bps,
            queue_bytes: self.queue_bytes,
        })
    }

    fn check_delay(&self, shape: Option<&Shape>) -> Result<(), String> {
        for (name, value_ns) in [("delay_ns", self.delay_ns), ("jitter_ns", self.jitter_ns)] {
            if value_ns > LONGEST_DELAY_NS {
                return Err(format!(
                    "{name} is {value_ns}; at most one hour ({LONGEST_DELAY_NS}) is allowed"
                ));
            }
        }
        let (least, most) = shape.map_or((-1.0, 1.0), |shape| (shape.least(), shape.most()));
        let at = |draw: f64| self.delay_ns as f64 + self.jitter_ns as f64 * draw;
        let tolerance_ns = shape.map_or(0.0, |_| ROUNDING_NS);
        if at(least) < -tolerance_ns {
            return Err(format!(
                "jitter_ns is {}; with the smallest draw, {least:.3}, and a delay_ns of {} the \
                 delay would be negative",
                self.jitter_ns, self.delay_ns
            ));
        }
        if at(most) > 2.0 * LONGEST_DELAY_NS as f64 {
            return Err(format!(
                "jitter_ns is {}; with the largest draw, {most:.3}, the delay would be longer \
                 than two hours",
                self.jitter_ns
            ));
        }
        Ok(())
    }

    fn check_probabilities(&self) -> Result<(), String> {
        let mut probabilities = vec![
            ("correlation", self.correlation),
            ("overtake", self.overtake),
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
        ];
        if let Some(bursts) = self.bursts {
            if self.loss != 0.0 {
                return Err("loss and bursts exclude each other".into());
            }
            probabilities.extend([
                ("bursts.p", bursts.p),
                ("bursts.r", bursts.r),
                ("bursts.h", bursts.h),
                ("bursts.k", bursts.k),
            ]);
        }
        for (name, value) in probabilities {
            if !(0.0..=1.0).contains(&value) {
                return Err(format!("{name} is {value}; 0 to 1 is allowed"));
            }
        }
        Ok(())
    }
}

impl Impairment {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(name: &str, values: &[f64]) -> Tables {
        let more = HashMap::from([(name.to_owned(), values.to_vec())]);
        Tables::default().extended(more).unwrap()
    }

    fn request(json: &str) -> ImpairmentRequest {
        serde_json::from_str(json).unwrap()
    }

    fn error(json: &str) -> String {
        request(json)
            .resolve(&tables("skewed", &[-0.5, 0.0, 4.0]))
            .unwrap_err()
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (json, name) in [
            (r#"{"delay_ns":18446744073709551615}"#, "delay_ns"),
            (
                r#"{"delay_ns":1,"jitter_ns":18446744073709551615}"#,
                "jitter_ns",
            ),
            (r#"{"delay_ns":1000,"jitter_ns":1001}"#, "jitter_ns"),
            (
                r#"{"delay_ns":999,"jitter_ns":2040,"table":"skewed"}"#,
                "-0.5",
            ),
            (r#"{"table":"unknown"}"#, "unknown"),
            (r#"{"correlation":1.01}"#, "correlation"),
            (r#"{"overtake":-0.1}"#, "overtake"),
            (r#"{"loss":1.01}"#, "loss"),
            (r#"{"loss":-0.1}"#, "loss"),
            (r#"{"duplicate":2}"#, "duplicate"),
            (r#"{"corrupt":2}"#, "corrupt"),
            (r#"{"bursts":{"p":2,"r":1}}"#, "bursts.p"),
            (r#"{"bursts":{"p":1,"r":-1}}"#, "bursts.r"),
            (r#"{"bursts":{"p":1,"r":1,"h":2}}"#, "bursts.h"),
            (r#"{"bursts":{"p":1,"r":1,"k":2}}"#, "bursts.k"),
            (r#"{"loss":0.1,"bursts":{"p":1,"r":1}}"#, "exclude"),
            (r#"{"rate_bps":0}"#, "rate_bps"),
            (r#"{"queue_bytes":0}"#, "queue_bytes"),
        ] {
            assert!(error(json).contains(name), "{json}: {}", error(json));
        }
        let nan = ImpairmentRequest {
            loss: f64::NAN,
            ..ImpairmentRequest::default()
        };
        assert!(
            nan.resolve(&Tables::default())
                .unwrap_err()
                .contains("loss")
        );
    }

    #[test]
    fn a_delay_may_reach_down_to_zero_and_a_little_rounding_is_forgiven() {
        let skewed = tables("skewed", &[-0.5, 0.0, 4.0]);
        for json in [
            r#"{"delay_ns":1000,"jitter_ns":1000}"#,
            r#"{"delay_ns":999,"jitter_ns":2000,"table":"skewed"}"#,
        ] {
            assert!(request(json).resolve(&skewed).is_ok(), "{json}");
        }
    }

    #[test]
    fn a_table_may_come_again_but_not_with_other_values() {
        let one = tables("t", &[-1.0, 1.0]);
        let again = |values: &[f64]| one.extended(HashMap::from([("t".into(), values.to_vec())]));
        assert!(again(&[-1.0, 1.0]).is_ok());
        assert!(again(&[-1.0, 2.0]).unwrap_err().contains("other values"));
        assert!(again(&[1.0]).unwrap_err().contains("table \"t\""));
    }

    #[test]
    fn there_is_an_end_to_tables() {
        let many = (0..=MOST_TABLES).map(|i| (i.to_string(), vec![0.0, 1.0]));
        let error = Tables::default().extended(many.collect()).unwrap_err();
        assert!(error.contains("1025 tables"), "{error}");
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

//! What a direction of a link does to frames, as it is requested, and its check.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::shape::Shape;

/// One hour: longer delays are typing errors.
const LONGEST_DELAY_NS: u64 = 3_600_000_000_000;

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

/// What one direction of a link does to frames. Everything absent means: nothing.
///
/// As it is requested, it names its table; [`Impairment::resolved`] checks it and finds the table.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Impairment {
    /// Every frame is delayed by this + [`Impairment::jitter_ns`] × a draw.
    pub delay_ns: u64,
    /// How far a draw of one moves the delay: half the width of the uniform distribution, or the
    /// standard deviation of a standardised table.
    pub jitter_ns: u64,
    /// Name of the table of quantiles from which the draw is; `None` is evenly from -1 to 1.
    pub table: Option<String>,
    /// The table that was named.
    #[serde(skip)]
    pub shape: Option<Arc<Shape>>,
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
    /// Bits a second; `None` is no limit.
    pub rate_bps: Option<u64>,
    /// Bytes that wait for transmission at most. A rate needs it.
    pub queue_bytes: Option<u64>,
}

impl Impairment {
    /// The impairment with its table, or what is wrong with it.
    pub fn resolved(mut self, tables: &Tables) -> Result<Impairment, String> {
        if let Some(name) = &self.table {
            let shape = tables.0.get(name);
            self.shape = Some(Arc::clone(
                shape.ok_or_else(|| format!("there is no table {name:?}"))?,
            ));
        }
        self.check_delay()?;
        self.check_probabilities()?;
        if self.rate_bps == Some(0) {
            return Err("rate_bps is 0; leave it out for no limit, or use loss 1".into());
        }
        if self.queue_bytes == Some(0) {
            return Err("queue_bytes is 0; at least 1 is allowed".into());
        }
        if self.rate_bps.is_some() && self.queue_bytes.is_none() {
            return Err("rate_bps needs queue_bytes: how much may wait for transmission".into());
        }
        Ok(self)
    }

    fn check_delay(&self) -> Result<(), String> {
        for (name, value_ns) in [("delay_ns", self.delay_ns), ("jitter_ns", self.jitter_ns)] {
            if value_ns > LONGEST_DELAY_NS {
                return Err(format!(
                    "{name} is {value_ns}; at most one hour ({LONGEST_DELAY_NS}) is allowed"
                ));
            }
        }
        let ends = |shape: &Arc<Shape>| (shape.least(), shape.most(), ROUNDING_NS);
        let (least, most, tolerance_ns) = self.shape.as_ref().map_or((-1.0, 1.0, 0.0), ends);
        let at = |draw: f64| self.delay_ns as f64 + self.jitter_ns as f64 * draw;
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
            ("overtake", self.overtake),
            ("loss", self.loss),
            ("duplicate", self.duplicate),
        ];
        if let Some(GilbertElliott { p, r, h, k }) = self.bursts {
            if self.loss != 0.0 {
                return Err("loss and bursts exclude each other".into());
            }
            probabilities.extend([
                ("bursts.p", p),
                ("bursts.r", r),
                ("bursts.h", h),
                ("bursts.k", k),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(name: &str, values: &[f64]) -> Tables {
        let more = HashMap::from([(name.to_owned(), values.to_vec())]);
        Tables::default().extended(more).unwrap()
    }

    fn resolved(json: &str) -> Result<Impairment, String> {
        let request: Impairment = serde_json::from_str(json).unwrap();
        request.resolved(&tables("skewed", &[-0.5, 0.0, 4.0]))
    }

    fn error(json: &str) -> String {
        resolved(json).unwrap_err()
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
            (r#"{"overtake":-0.1}"#, "overtake"),
            (r#"{"loss":1.01}"#, "loss"),
            (r#"{"loss":-0.1}"#, "loss"),
            (r#"{"duplicate":2}"#, "duplicate"),
            (r#"{"bursts":{"p":2,"r":1}}"#, "bursts.p"),
            (r#"{"bursts":{"p":1,"r":-1}}"#, "bursts.r"),
            (r#"{"bursts":{"p":1,"r":1,"h":2}}"#, "bursts.h"),
            (r#"{"bursts":{"p":1,"r":1,"k":2}}"#, "bursts.k"),
            (r#"{"loss":0.1,"bursts":{"p":1,"r":1}}"#, "exclude"),
            (r#"{"rate_bps":0}"#, "rate_bps"),
            (r#"{"queue_bytes":0}"#, "queue_bytes"),
            (r#"{"rate_bps":1000}"#, "needs queue_bytes"),
        ] {
            assert!(error(json).contains(name), "{json}: {}", error(json));
        }
        let nan = Impairment {
            loss: f64::NAN,
            ..Impairment::default()
        };
        let error = nan.resolved(&Tables::default()).unwrap_err();
        assert!(error.contains("loss"));
    }

    #[test]
    fn a_delay_may_reach_down_to_zero_and_a_little_rounding_is_forgiven() {
        for json in [
            r#"{"delay_ns":1000,"jitter_ns":1000}"#,
            r#"{"delay_ns":999,"jitter_ns":2000,"table":"skewed"}"#,
        ] {
            assert!(resolved(json).is_ok(), "{json}");
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
}

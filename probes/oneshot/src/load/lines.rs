//! The two lines that a job is told by: a header, which the protocol's own subcommand would take as
//! well, and the job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::load::deed::Deed;
use crate::load::objects::{Objects, Operation};
use crate::plan::{LoadTerms, MAX_OBJECT_BYTES, Payload, PlanLine};

const MAX_WORKERS: usize = 10_000;
/// Bucket and worker have two bytes each in a record.
const MAX_BUCKETS: usize = 1 << 16;
const MAX_OBJECTS: u64 = 99_999_999;
const DEFAULT_GIVE_UP_MS: u64 = 60_000;
/// Shares of a mix may be off by so much: 1/3 is written 0.33.
const SUM_TOLERANCE: f64 = 0.02;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    Mix,
    Fill,
    Remove,
}

/// What is to be done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub job: What,
    pub operations: BTreeMap<Deed, Operation>,
    pub workers: usize,
    pub buckets: Vec<String>,
    /// Objects `first` to `first + objects - 1` of each bucket.
    pub objects: u64,
    #[serde(default)]
    pub first: u64,
    pub object_bytes: u64,
    pub seed: u64,
    /// Where the records go.
    pub records: PathBuf,
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub ramp_ms: u64,
    /// Requests a second, of all workers together.
    pub rate: Option<f64>,
    #[serde(default)]
    pub mix: BTreeMap<Deed, f64>,
    /// Half-open ranges of turns that are not done again.
    #[serde(default)]
    pub done: Vec<(u64, u64)>,
    #[serde(default = "unsigned")]
    pub payload: Payload,
    /// The job ends when no request has been ok for so long.
    #[serde(default = "default_give_up_ms")]
    pub give_up_ms: u64,
}

fn unsigned() -> Payload {
    Payload::Unsigned
}

fn default_give_up_ms() -> u64 {
    DEFAULT_GIVE_UP_MS
}

impl PlanLine for Job {
    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return Err(format!("`workers` is not from 1 to {MAX_WORKERS}"));
        }
        if !(1..=MAX_BUCKETS).contains(&self.buckets.len()) {
            return Err(format!("`buckets` are not from 1 to {MAX_BUCKETS}"));
        }
        for bucket in &self.buckets {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if bucket.is_empty() || !bucket.bytes().all(plain) {
                return Err(format!("{bucket:?} is no name of a bucket"));
            }
        }
        if self.first.saturating_add(self.objects) > MAX_OBJECTS {
            return Err(format!("`first` and `objects` end beyond {MAX_OBJECTS}"));
        }
        if self.object_bytes > MAX_OBJECT_BYTES {
            return Err(format!("`object_bytes` is more than {MAX_OBJECT_BYTES}"));
        }
        if self.give_up_ms == 0 {
            return Err("`give_up_ms` is 0: the job would end before its first answer".into());
        }
        let wanted = match self.job {
            What::Mix => self.mix.keys().copied().collect(),
            What::Fill => vec![Deed::Put],
            What::Remove => vec![Deed::Remove],
        };
        let known = |deed: &&Deed| self.operations.contains_key(deed);
        if let Some(deed) = wanted.iter().find(|deed| !known(deed)) {
            return Err(format!("`operations` do not say how to {deed:?}"));
        }
        self.check_ranges()?;
        match self.job {
            What::Mix => self.check_mix(),
            What::Fill | What::Remove => self.check_not_a_mix(),
        }
    }
}

impl Job {
    pub fn terms(&self) -> LoadTerms {
        LoadTerms {
            object_bytes: self.object_bytes,
            payload: self.payload,
        }
    }

    /// What is read, written and removed.
    pub fn objects(&self) -> Objects {
        Objects::new(
            &self.operations,
            self.seed,
            &self.buckets,
            self.object_bytes,
        )
    }

    /// How many turns a fill or a removal has.
    pub fn turns(&self) -> u64 {
        self.objects * self.buckets.len() as u64
    }

    fn check_ranges(&self) -> Result<(), String> {
        let mut end = 0;
        for (from, to) in &self.done {
            if from < &end || to < from {
                return Err("`done` must be sorted, disjoint, half-open ranges".into());
            }
            end = *to;
        }
        Ok(())
    }

    fn check_mix(&self) -> Result<(), String> {
        if self.duration_ms.unwrap_or(0) == 0 {
            return Err("a mix needs `duration_ms`".into());
        }
        if !self.done.is_empty() {
            return Err("`done` means nothing to a mix".into());
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e6)) {
            return Err("`rate` is not above 0, or above a million a second".into());
        }
        let reads = |(deed, share): (&Deed, &f64)| deed.reads() && *share > 0.0;
        if self.objects == 0 && self.mix.iter().any(reads) {
            return Err("`mix` reads, and there is nothing to read: `objects` is 0".into());
        }
        let shares = || self.mix.values();
        let sum: f64 = shares().sum();
        if shares().any(|share| !(0.0..=1.0).contains(share)) || (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(format!("shares of `mix` must add up to 1, not to {sum}"));
        }
        Ok(())
    }

    fn check_not_a_mix(&self) -> Result<(), String> {
        let given = [
            ("duration_ms", self.duration_ms.is_some()),
            ("ramp_ms", self.ramp_ms > 0),
            ("rate", self.rate.is_some()),
            ("mix", !self.mix.is_empty()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(format!("`{name}` belongs to the job `mix`")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn job(changes: &str) -> Result<(), String> {
        let mut line: Value = serde_json::from_str(
            r#"{"job":"mix","workers":2,"buckets":["b"],"objects":1,"object_bytes":1,"seed":1,
                "records":"r","duration_ms":1,"mix":{"read":0.5,"write":0.5},
                "operations":{"read":{"name":"Get","request":{"seq":0,"phase":"measure",
                "endpoint":"Get"}},"write":{"name":"Put","request":{"seq":0,"phase":"measure",
                "endpoint":"Put"}}}}"#,
        )
        .unwrap();
        let changes: BTreeMap<String, Value> = serde_json::from_str(changes).unwrap();
        for (name, value) in changes {
            match value {
                Value::Null => line.as_object_mut().unwrap().remove(&name),
                value => line.as_object_mut().unwrap().insert(name, value),
            };
        }
        let job: Job = serde_json::from_value(line).map_err(|error| error.to_string())?;
        job.check()
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(job("{}"), Ok(()));
        for (changes, part) in [
            (r#"{"workers":0}"#, "`workers`"),
            (r#"{"buckets":[]}"#, "`buckets`"),
            (r#"{"buckets":["a b"]}"#, "no name of a bucket"),
            (r#"{"mix":{"read":0.5}}"#, "add up to 1"),
            (r#"{"mix":{"delete":1}}"#, "do not say how to Remove"),
            (r#"{"duration_ms":null}"#, "`duration_ms`"),
            (r#"{"done":[[0,1]]}"#, "means nothing to a mix"),
            (r#"{"rate":0}"#, "`rate`"),
            (r#"{"objects":0}"#, "nothing to read"),
            (r#"{"job":"fill"}"#, "belongs to the job `mix`"),
            (r#"{"job":"fil"}"#, "unknown variant"),
            (r#"{"records":null}"#, "missing field `records`"),
            (r#"{"extra":1}"#, "unknown field"),
        ] {
            let error = job(changes).unwrap_err();
            assert!(error.contains(part), "{changes}: {error}");
        }
    }

    #[test]
    fn ranges_must_be_in_order() {
        let fill = r#""job":"fill","duration_ms":null,"mix":null"#;
        assert_eq!(job(&format!(r#"{{{fill},"done":[[0,2],[2,5]]}}"#)), Ok(()));
        assert!(job(&format!(r#"{{{fill},"done":[[0,2],[1,5]]}}"#)).is_err());
    }
}

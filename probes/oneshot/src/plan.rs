//! The plan: a header line, then one request a line, read as they come.
//!
//! A line is taken only when the request before it is done, so a driver may write a request, wait
//! for its record, and write the next. What is wrong in a line is said with the line's number.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Whether the connection is kept between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionMode {
    #[default]
    KeepAlive,
    New,
}

/// What a request is for. Carried through to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Prepare,
    Warmup,
    Measure,
}

/// A line that is understood, but may still make no sense.
pub trait PlanLine: DeserializeOwned {
    /// Says what is wrong with it, and what is allowed.
    fn check(&self) -> Result<(), String>;
}

/// Fails where a line lacks a field that `endpoint` needs, or has one that it would silently ignore.
/// A field is its name, and whether it is given, may be given and must be given.
pub fn check_fields(endpoint: &str, fields: &[(&str, bool, bool, bool)]) -> Result<(), String> {
    for (name, given, allowed, required) in fields {
        if *given && !allowed {
            return Err(format!("`{name}` means nothing to {endpoint}"));
        }
        if *required && !given {
            return Err(format!("{endpoint} needs `{name}`"));
        }
    }
    Ok(())
}

/// Fails where the time allowed is none.
pub fn check_deadline(deadline_ms: Option<u64>) -> Result<(), String> {
    match deadline_ms {
        Some(0) => Err("`deadline_ms` is 0: no request could be answered in time".into()),
        _ => Ok(()),
    }
}

/// The time that a request has: its own, or else the header's.
pub fn allowed_ns(own_ms: Option<u64>, header_ms: u64) -> u64 {
    own_ms.unwrap_or(header_ms).saturating_mul(1_000_000)
}

/// A plan that cannot be followed. `line` counts from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanError {
    pub line: u64,
    pub what: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan line {}: {}", self.line, self.what)
    }
}

/// Why a plan was not carried out to its end.
#[derive(Debug)]
pub enum Stopped {
    Plan(PlanError),
    /// Nobody takes the records any more.
    Output(std::io::Error),
}

/// Reads a plan line by line.
pub struct Plan<R> {
    input: R,
    line: u64,
    text: String,
}

impl<R: BufRead> Plan<R> {
    pub fn new(input: R) -> Self {
        Plan {
            input,
            line: 0,
            text: String::new(),
        }
    }

    /// The header, which must be there.
    pub fn header<H: PlanLine>(&mut self) -> Result<H, PlanError> {
        let header = self.next_line()?;
        header.ok_or_else(|| PlanError {
            line: 1,
            what: "there is no header".into(),
        })
    }

    /// The next line, or None at the plan's end.
    pub fn next_line<L: PlanLine>(&mut self) -> Result<Option<L>, PlanError> {
        loop {
            self.text.clear();
            self.line += 1;
            match self.input.read_line(&mut self.text) {
                Ok(0) => return Ok(None),
                Ok(_) if self.text.trim().is_empty() => continue,
                Ok(_) => break,
                Err(error) => return Err(self.error(&format!("cannot be read: {error}"))),
            }
        }
        let line: L = serde_json::from_str(&self.text).map_err(|error| {
            // serde_json ends its message with a line number of its own, always 1 here.
            let text = error.to_string();
            let what = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(what, _)| what);
            self.error(&format!("column {}: {what}", error.column()))
        })?;
        line.check().map_err(|what| self.error(&what))?;
        Ok(Some(line))
    }

    /// Something is wrong with the line that was read last.
    pub fn error(&self, what: &str) -> PlanError {
        PlanError {
            line: self.line,
            what: what.to_owned(),
        }
    }
}

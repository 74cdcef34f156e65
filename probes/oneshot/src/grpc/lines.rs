//! The lines of a gRPC plan: a header, then requests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::grpc::bob::{self, Bob};
use crate::grpc::call::MAX_MESSAGE_BYTES;
use crate::grpc::window::Window;
use crate::plan::{self, ConnectionMode, Phase, PlanLine};

/// Bob's message with an object of 100 MiB fits.
const DEFAULT_MESSAGE_BYTES: u64 = 128 << 20;

/// The plan's first line: where to, for how long at most, and what may be asked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub host: String,
    pub port: u16,
    #[serde(default)]
    pub connection: ConnectionMode,
    /// For connecting, sending and receiving together.
    pub deadline_ms: u64,
    /// The longest message in either direction, without the five bytes that come before it.
    #[serde(default = "default_message_bytes")]
    pub max_message_bytes: u64,
    /// HTTP/2's, for answers.
    #[serde(default)]
    pub window: Window,
    /// The .proto files whose methods the plan asks; Bob's needs none.
    #[serde(default)]
    pub protos: Vec<PathBuf>,
    /// The directories that these, and what they import, are looked up in.
    #[serde(default)]
    pub includes: Vec<PathBuf>,
    /// Sent with every request.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

fn default_message_bytes() -> u64 {
    DEFAULT_MESSAGE_BYTES
}

impl PlanLine for Header {
    fn check(&self) -> Result<(), String> {
        plan::check_deadline(Some(self.deadline_ms))?;
        if !(1..=MAX_MESSAGE_BYTES).contains(&self.max_message_bytes) {
            return Err(format!(
                "`max_message_bytes` is {}, which is not from 1 to {MAX_MESSAGE_BYTES}",
                self.max_message_bytes
            ));
        }
        Ok(())
    }
}

/// One request, as planned.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub seq: u64,
    pub phase: Phase,
    pub endpoint: Endpoint,
    pub key: Option<Key>,
    /// The object's length: of the body to send, or of the body that must come back.
    pub object_bytes: Option<u64>,
    /// The seed its bytes are made from (see [`crate::body`]).
    pub body_seed: Option<u64>,
    /// Exist: the answer that is right.
    pub exists: Option<bool>,
    /// A method's request in JSON, with placeholders (see [`crate::grpc::template`]).
    pub request: Option<Value>,
    /// The field of a method's response that must hold the body: names joined by dots.
    pub response_object: Option<String>,
    /// For this request, in place of the header's.
    pub deadline_ms: Option<u64>,
}

/// One of Bob's endpoints by its name, or any method by its full one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Bob(Bob),
    Method { service: String, method: String },
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        if let Some(bob) = Bob::named(&name) {
            return Ok(Endpoint::Bob(bob));
        }
        match name.split_once('/') {
            Some((service, method)) if !service.is_empty() && !method.is_empty() => {
                Ok(Endpoint::Method {
                    service: service.to_owned(),
                    method: method.to_owned(),
                })
            }
            _ => Err(serde::de::Error::custom(format!(
                "unknown endpoint `{name}`, expected one of {}, or package.Service/Method",
                bob::NAMES.join(", ")
            ))),
        }
    }
}

impl Endpoint {
    pub fn name(&self) -> String {
        match self {
            Endpoint::Bob(bob) => bob.name().to_owned(),
            Endpoint::Method { service, method } => format!("{service}/{method}"),
        }
    }
}

/// A key: bytes, written as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.bytes().map(|digit| (digit as char).to_digit(16));
        let digits: Option<Vec<u32>> = digits.collect();
        match digits {
            Some(digits) if digits.len().is_multiple_of(2) => Ok(Key(digits
                .chunks_exact(2)
                .map(|two| (two[0] * 16 + two[1]) as u8)
                .collect())),
            _ => Err(serde::de::Error::custom(format!(
                "`key` must be hexadecimal digits, two a byte: {text:?}"
            ))),
        }
    }
}

impl Key {
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl PlanLine for Request {
    /// It has every field its endpoint needs, and none that its endpoint would silently ignore.
    /// What a method's request must look like is known to its .proto file only.
    fn check(&self) -> Result<(), String> {
        let bob = match &self.endpoint {
            Endpoint::Bob(bob) => Some(*bob),
            Endpoint::Method { .. } => None,
        };
        let any = bob.is_none();
        let keyed = bob.is_some_and(|bob| bob != Bob::Ping);
        let puts = bob == Some(Bob::Put);
        let sized = any || puts || bob == Some(Bob::Get);
        // (name, is given, may be given, must be given)
        let fields = [
            ("key", self.key.is_some(), any || keyed, keyed),
            ("object_bytes", self.object_bytes.is_some(), sized, puts),
            ("body_seed", self.body_seed.is_some(), sized, puts),
            (
                "exists",
                self.exists.is_some(),
                bob == Some(Bob::Exist),
                false,
            ),
            ("request", self.request.is_some(), any, false),
            (
                "response_object",
                self.response_object.is_some(),
                any,
                false,
            ),
        ];
        plan::check_fields(&self.endpoint.name(), &fields)?;
        plan::check_deadline(self.deadline_ms)?;
        if let Some(key) = &self.key
            && bob.is_some()
            && key.0.len() != bob::KEY_BYTES
        {
            let wrong = bob::wrong_key_error(key.0.len());
            return Err(format!("{wrong} (`key` has two hexadecimal digits a byte)"));
        }
        if self.body_seed.is_some() && self.object_bytes.is_none() {
            return Err("`body_seed` without `object_bytes` says nothing about a body".into());
        }
        if self.response_object.is_some() && self.body_seed.is_none() {
            return Err("`response_object` needs `object_bytes` and `body_seed`".into());
        }
        Ok(())
    }
}

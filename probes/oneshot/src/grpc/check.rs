//! Is what came back what was asked for? Judged once the clock has stopped.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor};
use wanlat_proto::bob_storage::{Blob, ExistResponse, Null, OpStatus};

use crate::body;
use crate::grpc::bob::Bob;
use crate::grpc::outcome::of_bob_error;
use crate::outcome::Verdict;

/// The object that must come back, as far as the plan says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Object {
    pub bytes: Option<u64>,
    pub seed: Option<u64>,
}

/// What an OK answer must hold.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Bob's answer to this endpoint; `exists` is what Exist must say.
    Bob {
        bob: Bob,
        exists: bool,
        object: Object,
    },
    /// A message of this type, with the object in this field.
    Message {
        descriptor: MessageDescriptor,
        object: Option<(Vec<FieldDescriptor>, Object)>,
    },
}

/// What an OK answer was found to hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// Length of the object that came, or of the message where no object was expected.
    pub object_bytes: u64,
    /// SHA-256 of the object that came.
    pub sha256: Option<String>,
}

/// Checks the message of an OK answer.
pub fn check(expected: &Expected, message: &Bytes) -> Finding {
    let checked = match expected {
        Expected::Bob {
            bob,
            exists,
            object,
        } => of_bob(*bob, *exists, *object, message),
        Expected::Message { descriptor, object } => of_message(descriptor, object, message),
    };
    let found = checked.unwrap_or_else(|error| Finding {
        verdict: Verdict::unknown(format!("malformed response: {error}")),
        object_bytes: 0,
        sha256: None,
    });
    match found.sha256 {
        Some(_) => found,
        None => Finding {
            object_bytes: message.len() as u64,
            ..found
        },
    }
}

fn of_bob(
    bob: Bob,
    exists: bool,
    object: Object,
    message: &Bytes,
) -> Result<Finding, prost::DecodeError> {
    let verdict = match bob {
        Bob::Put | Bob::Delete => OpStatus::decode(message.clone())?
            .error
            .map_or_else(Verdict::ok, |error| of_bob_error(&error)),
        Bob::Get => return Ok(of_object(object, &Blob::decode(message.clone())?.data)),
        Bob::Exist => {
            let said = ExistResponse::decode(message.clone())?.exist;
            if said == [exists] {
                Verdict::ok()
            } else {
                Verdict::fail(format!("wrong answer: {said:?}, not {:?}", [exists]))
            }
        }
        Bob::Ping => {
            Null::decode(message.clone())?;
            Verdict::ok()
        }
    };
    Ok(verdict.into())
}

fn of_message(
    descriptor: &MessageDescriptor,
    object: &Option<(Vec<FieldDescriptor>, Object)>,
    message: &Bytes,
) -> Result<Finding, prost::DecodeError> {
    let mut message = DynamicMessage::decode(descriptor.clone(), message.clone())?;
    let Some((path, object)) = object else {
        return Ok(Verdict::ok().into());
    };
    let (last, path) = path.split_last().expect("a path has a field");
    for field in path {
        let inner = message.get_field(field).as_message().cloned();
        message = inner.expect("a path leads through messages");
    }
    let field = message.get_field(last);
    Ok(of_object(
        *object,
        field.as_bytes().expect("a path ends at bytes"),
    ))
}

fn of_object(object: Object, data: &Bytes) -> Finding {
    let sha256 = body::sha256_of([data.as_ref()]);
    let bytes = data.len() as u64;
    let verdict = match (object.bytes, object.seed) {
        (Some(expected), _) if expected != bytes => {
            Verdict::fail(format!("length mismatch: {bytes} bytes, not {expected}"))
        }
        (Some(_), Some(seed)) if body::sha256(seed, bytes) != sha256 => {
            Verdict::fail("checksum mismatch")
        }
        _ => Verdict::ok(),
    };
    Finding {
        verdict,
        object_bytes: bytes,
        sha256: Some(sha256),
    }
}

impl From<Verdict> for Finding {
    fn from(verdict: Verdict) -> Self {
        Finding {
            verdict,
            object_bytes: 0,
            sha256: None,
        }
    }
}

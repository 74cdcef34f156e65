//! Is what came back what was asked for? Judged once the clock has stopped.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor};
use wanlat_proto::bob_storage::{Blob, ExistResponse, Null, OpStatus};

use crate::body;
use crate::grpc::bob::Bob;
use crate::grpc::outcome::of_bob_error;
use crate::outcome::Verdict;
use crate::verify::Verifier;

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

impl Expected {
    /// The seed of the object that the answer is to be compared with as it comes.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Expected::Bob {
                bob: Bob::Get,
                object,
                ..
            } => object.seed,
            _ => None,
        }
    }
}

/// What an OK answer was found to hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// Length of the object that came, or of the message where no object was expected.
    pub object_bytes: u64,
    /// SHA-256 of the object that came.
    pub sha256: Option<String>,
    /// How long comparing it took, where its bytes are known.
    pub verify_ns: Option<u64>,
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
        verify_ns: None,
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

/// The finding about an object that was compared as it came.
pub fn compared(expected: &Expected, came: &Verifier) -> Finding {
    let object = match expected {
        Expected::Bob { object, .. } => *object,
        Expected::Message { object, .. } => object.as_ref().map_or(Object::default(), |it| it.1),
    };
    Finding {
        verdict: of_compared(object, came.bytes(), came.first_wrong().is_none()),
        object_bytes: came.bytes(),
        sha256: Some(came.sha256()),
        verify_ns: Some(came.spent_ns()),
    }
}

fn of_object(object: Object, data: &Bytes) -> Finding {
    let came = object.seed.map(|seed| {
        let mut came = Verifier::new(seed);
        came.take(data);
        came
    });
    let is_right = came.as_ref().is_none_or(|it| it.first_wrong().is_none());
    Finding {
        verdict: of_compared(object, data.len() as u64, is_right),
        object_bytes: data.len() as u64,
        sha256: Some(body::sha256_of([data.as_ref()])),
        verify_ns: came.map(|it| it.spent_ns()),
    }
}

fn of_compared(object: Object, bytes: u64, is_right: bool) -> Verdict {
    match object.bytes {
        Some(expected) if expected != bytes => {
            Verdict::fail(format!("length mismatch: {bytes} bytes, not {expected}"))
        }
        _ if is_right => Verdict::ok(),
        _ => Verdict::fail("checksum mismatch"),
    }
}

impl From<Verdict> for Finding {
    fn from(verdict: Verdict) -> Self {
        Finding {
            verdict,
            object_bytes: 0,
            sha256: None,
            verify_ns: None,
        }
    }
}

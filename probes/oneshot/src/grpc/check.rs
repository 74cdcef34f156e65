//! Is what came back what was asked for? Judged once the clock has stopped.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor};
use wanlat_proto::bob_storage::{Blob, ExistResponse, Null, OpStatus};

use crate::body;
use crate::grpc::bob::Bob;
use crate::grpc::call::Answer;
use crate::grpc::framing;
use crate::grpc::outcome::of_bob_error;
use crate::outcome::Verdict;
use crate::record::Record;
use crate::verify::Verifier;

/// The object that must come back, as far as the plan says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Object {
    pub bytes: Option<u64>,
    pub seed: Option<u64>,
}

/// What is known of a request and of its answer.
pub struct Known {
    /// Of the object that the message holds: length and SHA-256.
    pub object_bytes: Option<u64>,
    pub sha256: Option<String>,
    /// Executing it may change the store.
    pub writes: bool,
    pub expected: Expected,
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

/// Checks an OK answer, and notes what it held. Err: it is malformed.
pub fn check(
    known: &Known,
    answer: &Answer,
    lean: bool,
    record: &mut Record,
) -> Result<Verdict, String> {
    let mut noting = Noting { record, lean };
    if let Some(blob) = &answer.blob {
        let came = blob.finish()?;
        let Expected::Bob { object, .. } = known.expected else {
            unreachable!("only Bob's blobs are compared as they come")
        };
        return Ok(noting.object(object, came.bytes(), Some(came), || came.sha256()));
    }
    let message = framing::unframed(&answer.data)?;
    if known.object_bytes.is_none() {
        noting.record.object_bytes = message.len() as u64;
    }
    let checked = match &known.expected {
        Expected::Bob {
            bob,
            exists,
            object,
        } => noting.of_bob(*bob, *exists, *object, message),
        Expected::Message { descriptor, object } => {
            noting.of_message(descriptor, object.as_ref(), message)
        }
    };
    checked.map_err(|error| error.to_string())
}

struct Noting<'a> {
    record: &'a mut Record,
    lean: bool,
}

impl Noting<'_> {
    fn of_bob(
        &mut self,
        bob: Bob,
        exists: bool,
        object: Object,
        message: Bytes,
    ) -> Result<Verdict, prost::DecodeError> {
        Ok(match bob {
            Bob::Put | Bob::Delete => OpStatus::decode(message)?
                .error
                .map_or_else(Verdict::ok, |error| of_bob_error(&error)),
            Bob::Get => self.held_object(object, &Blob::decode(message)?.data),
            Bob::Exist => {
                let said = ExistResponse::decode(message)?.exist;
                if said == [exists] {
                    Verdict::ok()
                } else {
                    Verdict::fail(format!("wrong answer: {said:?}, not {:?}", [exists]))
                }
            }
            Bob::Ping => Null::decode(message).map(|_| Verdict::ok())?,
        })
    }

    fn of_message(
        &mut self,
        descriptor: &MessageDescriptor,
        object: Option<&(Vec<FieldDescriptor>, Object)>,
        message: Bytes,
    ) -> Result<Verdict, prost::DecodeError> {
        let mut message = DynamicMessage::decode(descriptor.clone(), message)?;
        let Some((path, object)) = object else {
            return Ok(Verdict::ok());
        };
        let names: Vec<&str> = path.iter().map(FieldDescriptor::name).collect();
        let (last, path) = path.split_last().expect("a path has a field");
        for field in path {
            if !message.has_field(field) {
                return Ok(self.not_found(&names));
            }
            let inner = message.get_field(field).as_message().cloned();
            message = inner.expect("a path leads through messages");
        }
        // An empty object and none look alike there.
        if object.bytes.is_some_and(|bytes| bytes > 0) && !message.has_field(last) {
            return Ok(self.not_found(&names));
        }
        let field = message.get_field(last);
        let data = field.as_bytes().expect("a path ends at bytes");
        Ok(self.held_object(*object, data))
    }

    fn not_found(&mut self, path: &[&str]) -> Verdict {
        self.record.object_bytes = 0;
        Verdict::not_found(&format!("the answer has no `{}`", path.join(".")))
    }

    fn held_object(&mut self, object: Object, data: &Bytes) -> Verdict {
        let came = object.seed.map(|seed| {
            let mut came = Verifier::new(seed);
            came.take(data);
            came
        });
        let sha256 = || body::sha256_of([data.as_ref()]);
        self.object(object, data.len() as u64, came.as_ref(), sha256)
    }

    fn object(
        &mut self,
        expected: Object,
        bytes: u64,
        came: Option<&Verifier>,
        sha256: impl FnOnce() -> String,
    ) -> Verdict {
        if !self.lean {
            self.record.sha256 = Some(sha256());
        }
        self.record.object_came(bytes, came, expected.bytes)
    }
}

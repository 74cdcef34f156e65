//! Bob's endpoints: what is sent, and whether a key may be.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use wanlat_proto::bob_storage::{
    Blob, BlobKey, BlobMeta, DeleteRequest, ExistRequest, GetRequest, Null, PutRequest,
};

use crate::clock;
use crate::grpc::framing::framed;
use crate::outgoing::Outgoing;

/// A `bobd` is built for one length of keys and ends when it is sent another one.
pub const KEY_BYTES: usize = 8;

const SERVICE: &str = "bob_storage.BobApi";

/// One of Bob's endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bob {
    Put,
    Get,
    Exist,
    Delete,
    Ping,
}

impl Bob {
    pub const ALL: [Bob; 5] = [Bob::Put, Bob::Get, Bob::Exist, Bob::Delete, Bob::Ping];

    pub fn named(name: &str) -> Option<Bob> {
        Bob::ALL.into_iter().find(|bob| bob.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Bob::Put => "Put",
            Bob::Get => "Get",
            Bob::Exist => "Exist",
            Bob::Delete => "Delete",
            Bob::Ping => "Ping",
        }
    }

    /// The plan's fields that it needs, and that it may have.
    pub fn fields(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Bob::Put => (&["key", "object_bytes", "body_seed"], &[]),
            Bob::Get => (&["key"], &["object_bytes", "body_seed"]),
            Bob::Exist => (&["key"], &["exists"]),
            Bob::Delete => (&["key"], &[]),
            Bob::Ping => (&[], &[]),
        }
    }

    pub fn path(self) -> String {
        format!("/{SERVICE}/{}", self.name())
    }

    /// Executing it changes the store, so it matters whether a failed one was executed.
    pub fn writes(self) -> bool {
        matches!(self, Bob::Put | Bob::Delete)
    }

    /// The message, with its five bytes before it; Put's with an object of seed and length.
    pub fn message(self, key: &[u8], (seed, bytes): (u64, u64)) -> Outgoing {
        let key = Some(BlobKey {
            key: Bytes::copy_from_slice(key),
        });
        let options = None;
        let message = match self {
            Bob::Put => return put(key, seed, bytes),
            Bob::Get => framed(&GetRequest { key, options }),
            Bob::Exist => framed(&ExistRequest {
                keys: key.into_iter().collect(),
                options,
            }),
            Bob::Delete => framed(&DeleteRequest {
                key,
                meta: now(),
                options: None,
            }),
            Bob::Ping => framed(&Null {}),
        };
        message.into()
    }
}

/// A Put of the body of `seed`, which is made while it is sent: the bytes that prost would make.
fn put(key: Option<BlobKey>, seed: u64, body_bytes: u64) -> Outgoing {
    // Blob: data, of which only the length is here, and meta after it.
    let mut data = BytesMut::new();
    if body_bytes > 0 {
        encode_key(1, WireType::LengthDelimited, &mut data);
        encode_varint(body_bytes, &mut data);
    }
    let blob = Blob {
        data: Bytes::new(),
        meta: now(),
    };
    let meta = blob.encode_to_vec();
    // PutRequest: key, and the blob's length.
    let request = PutRequest {
        key,
        ..PutRequest::default()
    };
    let mut head = BytesMut::from(&request.encode_to_vec()[..]);
    encode_key(2, WireType::LengthDelimited, &mut head);
    encode_varint((data.len() + meta.len()) as u64 + body_bytes, &mut head);
    head.extend_from_slice(&data);

    let mut before = BytesMut::new();
    before.put_u8(0); // not compressed
    before.put_u32((head.len() + meta.len()) as u32 + body_bytes as u32);
    before.extend_from_slice(&head);
    Outgoing::around(before.freeze(), seed, body_bytes, meta.into())
}

fn now() -> Option<BlobMeta> {
    let timestamp = clock::unix_s();
    Some(BlobMeta { timestamp })
}

/// The length of a key in this message to Bob that Bob would not survive. Whatever .proto file the
/// message was made with, it is read here as a server reads it.
pub fn wrong_key(service: &str, method: &str, message: &[u8]) -> Option<usize> {
    if service != SERVICE {
        return None;
    }
    let keys: Vec<BlobKey> = match Bob::named(method)? {
        Bob::Put => PutRequest::decode(message).ok()?.key.into_iter().collect(),
        Bob::Get => GetRequest::decode(message).ok()?.key.into_iter().collect(),
        Bob::Exist => ExistRequest::decode(message).ok()?.keys,
        Bob::Delete => DeleteRequest::decode(message)
            .ok()?
            .key
            .into_iter()
            .collect(),
        Bob::Ping => Vec::new(),
    };
    let lengths = keys.iter().map(|key| key.key.len());
    lengths.into_iter().find(|length| *length != KEY_BYTES)
}

/// Why a key of this length is not sent.
pub fn wrong_key_error(bytes: usize) -> String {
    format!(
        "a key is {bytes} bytes long, but Bob's keys are {KEY_BYTES}: another length would end the \
         server"
    )
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;
    use crate::body;

    #[test]
    fn a_put_that_is_made_while_it_is_sent_is_the_message_that_prost_makes() {
        for bytes in [0, 1, 127, 128, 1024, 70_000, 9 << 20] {
            let blob = body::whole(5, bytes as u64);
            let at_s = clock::unix_s();
            let mut outgoing = Bob::Put.message(&[1; 8], (5, bytes as u64));
            let sent = outgoing.copy_to_bytes(outgoing.remaining());
            let whole = framed(&PutRequest {
                key: Some(BlobKey {
                    key: vec![1; 8].into(),
                }),
                data: Some(Blob {
                    data: blob.into(),
                    meta: now(),
                }),
                options: None,
            });
            assert!(sent == whole || clock::unix_s() != at_s, "{bytes} bytes");
        }
    }
}

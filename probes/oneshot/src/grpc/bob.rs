//! Bob's endpoints: what is sent, and whether a key may be.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use wanlat_proto::bob_storage::{
    Blob, BlobKey, BlobMeta, DeleteRequest, ExistRequest, GetRequest, Null, PutRequest,
};

use crate::grpc::framing::framed;
use crate::outgoing::Outgoing;

/// A `bobd` is built for one length of keys and ends when it is sent another one.
pub const KEY_BYTES: usize = 8;

/// The message that holds a key.
pub const KEY_MESSAGE: &str = "bob_storage.BlobKey";

const SERVICE: &str = "bob_storage.BobApi";

pub const NAMES: [&str; 5] = ["Put", "Get", "Exist", "Delete", "Ping"];

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
    const ALL: [Bob; 5] = [Bob::Put, Bob::Get, Bob::Exist, Bob::Delete, Bob::Ping];

    pub fn named(name: &str) -> Option<Bob> {
        Bob::ALL.into_iter().find(|bob| bob.name() == name)
    }

    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    pub fn path(self) -> String {
        format!("/{SERVICE}/{}", self.name())
    }

    /// Executing it changes the store, so it matters whether a failed one was executed.
    pub fn writes(self) -> bool {
        matches!(self, Bob::Put | Bob::Delete)
    }

    /// The message, with its five bytes before it. `blob` is what Put puts.
    pub fn message(self, key: &[u8], blob: Bytes) -> Bytes {
        let key = Some(BlobKey {
            key: Bytes::copy_from_slice(key),
        });
        let options = None;
        match self {
            Bob::Put => framed(PutRequest {
                key,
                data: Some(Blob {
                    data: blob,
                    meta: now(),
                }),
                options: None,
            }),
            Bob::Get => framed(GetRequest { key, options }),
            Bob::Exist => framed(ExistRequest {
                keys: key.into_iter().collect(),
                options,
            }),
            Bob::Delete => framed(DeleteRequest {
                key,
                meta: now(),
                options: None,
            }),
            Bob::Ping => framed(Null {}),
        }
    }
}

/// A Put of the body of `seed`, which is made while it is sent: what [`Bob::message`] makes of it.
pub fn put(key: &[u8], seed: u64, body_bytes: u64) -> Outgoing {
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
    let key = Some(BlobKey {
        key: Bytes::copy_from_slice(key),
    });
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
    Some(BlobMeta { timestamp: now_s() })
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
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
            let mut blob = vec![0; bytes];
            body::fill(5, 0, &mut blob);
            let at_s = now_s();
            let mut outgoing = put(&[1; 8], 5, bytes as u64);
            let sent = outgoing.copy_to_bytes(outgoing.remaining());
            let whole = Bob::Put.message(&[1; 8], blob.into());
            assert!(sent == whole || now_s() != at_s, "{bytes} bytes");
        }
    }
}

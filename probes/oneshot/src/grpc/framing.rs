//! Messages as gRPC puts them into a stream: a flag (compressed or not), the length, the message.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

/// The most a message may be long, so that HTTP/2's windows, which end at 2^31 - 1, hold it.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// What precedes a message.
pub const PREFIX_BYTES: usize = 5;

/// The message as it is sent: not compressed, and its length before it.
pub fn framed(message: &impl Message) -> Bytes {
    let bytes = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + bytes);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(bytes).expect("limits of messages are far below"));
    message.encode(&mut framed).expect("there is room");
    framed.freeze()
}

/// The one message of a body that came in these pieces; Err says what it is instead.
pub fn unframed(pieces: &[Bytes]) -> Result<Bytes, String> {
    let body: Bytes = match pieces {
        [] => Bytes::new(),
        [whole] => whole.clone(),
        _ => pieces.concat().into(),
    };
    let Some((prefix, rest)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(match body.len() {
            0 => "there is no message".into(),
            _ => "there is no whole message".into(),
        });
    };
    let [flag, length @ ..] = *prefix;
    let bytes = u32::from_be_bytes(length);
    if flag != 0 {
        return Err("the message is compressed, which nobody asked for".into());
    }
    check_length(u64::from(bytes), rest.len() as u64)?;
    Ok(body.slice(PREFIX_BYTES..))
}

/// Checks that the bytes received are one message of this length; Err names what they are instead.
pub fn check_length(bytes: u64, came: u64) -> Result<(), String> {
    match came.checked_sub(bytes) {
        None => Err("there is no whole message".into()),
        Some(0) => Ok(()),
        Some(after) => Err(format!(
            "a message of {bytes} bytes, and {after} bytes after it"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wanlat_proto::bob_storage::BlobMeta;

    #[test]
    fn a_message_comes_out_of_any_pieces() {
        // gRPC over HTTP2: compressed-flag 0, a length of four bytes, the message.
        let message = BlobMeta { timestamp: 5 };
        let (framed, message) = (framed(&message), message.encode_to_vec());
        assert_eq!(framed[..], [0, 0, 0, 0, 2, 0x08, 5]);
        for piece in 1..framed.len() {
            let pieces: Vec<Bytes> = framed.chunks(piece).map(Bytes::copy_from_slice).collect();
            assert_eq!(unframed(&pieces).unwrap(), message);
        }
    }

    #[test]
    fn what_is_not_one_message_is_told() {
        let of = |bytes: &'static [u8]| unframed(&[Bytes::from_static(bytes)]).unwrap_err();
        assert_eq!(of(b""), "there is no message");
        assert_eq!(
            of(&[0, 0, 0, 0, 1, 9, 0]),
            "a message of 1 bytes, and 1 bytes after it"
        );
        assert!(of(&[1, 0, 0, 0, 1, 9]).contains("compressed"));
        assert_eq!(of(&[0, 0, 0, 0, 3, 9]), "there is no whole message");
        assert_eq!(of(&[0, 0]), "there is no whole message");
    }
}

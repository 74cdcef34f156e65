//! Messages as gRPC puts them into a stream, by tonic: before the clock starts and after it stopped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame};
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBody, Streaming};
use tonic_prost::ProstEncoder;

use crate::grpc::call::PREFIX_BYTES;

/// The message as it is sent: not compressed, and its length before it.
pub fn framed<M: Message>(message: M) -> Bytes {
    let bytes = message.encoded_len() + PREFIX_BYTES;
    let encoder = ProstEncoder::new(BufferSettings::new(bytes, usize::MAX));
    let source = tokio_stream::once(Ok(message));
    let mut body = pin!(EncodeBody::new_client(encoder, source, None, None));
    let mut framed = BytesMut::new();
    // There is nothing that it could wait for.
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut context) {
        if let Ok(data) = frame.into_data() {
            if framed.is_empty() {
                framed = data.into();
            } else {
                framed.extend_from_slice(&data);
            }
        }
    }
    framed.freeze()
}

/// The one message of a body that came in these pieces; Err says what it is instead.
pub fn unframed(pieces: &[Bytes], limit: u64) -> Result<Bytes, String> {
    let received: usize = pieces.iter().map(Bytes::len).sum();
    if received == 0 {
        return Err("there is no message".into());
    }
    let body = Pieces(pieces.iter().cloned().collect());
    let mut streaming =
        Streaming::new_response(Whole, body, StatusCode::OK, None, Some(limit as usize));
    let first = pin!(streaming.message()).poll(&mut Context::from_waker(Waker::noop()));
    match first {
        Poll::Ready(Ok(Some(message))) if message.len() + PREFIX_BYTES == received => Ok(message),
        Poll::Ready(Ok(Some(message))) => Err(format!(
            "a message of {} bytes, and {} bytes after it",
            message.len(),
            received - PREFIX_BYTES - message.len()
        )),
        Poll::Ready(Err(status)) => Err(reason(&status)),
        Poll::Ready(Ok(None)) | Poll::Pending => Err("there is no whole message".into()),
    }
}

fn reason(status: &Status) -> String {
    status.message().to_owned()
}

struct Whole;

impl Decoder for Whole {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wanlat_proto::bob_storage::{BlobMeta, Null};

    #[test]
    fn a_message_is_framed_as_grpc_says() {
        // gRPC over HTTP2: compressed-flag 0, a length of four bytes, the message.
        assert_eq!(framed(Null {}), [0, 0, 0, 0, 0].as_slice());
        let meta = BlobMeta { timestamp: 5 };
        assert_eq!(framed(meta), [0, 0, 0, 0, 2, 0x08, 5].as_slice());
    }

    #[test]
    fn a_message_comes_out_of_any_pieces() {
        let message = [7u8; 100];
        let framed = [&[0, 0, 0, 0, 100][..], &message].concat();
        for piece in 1..framed.len() {
            let pieces: Vec<Bytes> = framed.chunks(piece).map(Bytes::copy_from_slice).collect();
            assert_eq!(unframed(&pieces, 100).unwrap(), message.as_slice());
        }
    }

    #[test]
    fn what_is_not_one_message_is_told() {
        let of = |bytes: &'static [u8]| unframed(&[Bytes::from_static(bytes)], 10).unwrap_err();
        assert_eq!(of(b""), "there is no message");
        assert_eq!(
            of(&[0, 0, 0, 0, 1, 9, 0]),
            "a message of 1 bytes, and 1 bytes after it"
        );
        assert!(of(&[1, 0, 0, 0, 1, 9]).contains("compressed"));
        assert!(!of(&[0, 0, 0, 0, 3, 9]).is_empty());
    }
}

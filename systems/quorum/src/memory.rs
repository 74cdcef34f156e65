//! Memory for bodies on their way in: what would not fit waits, unread.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::{Body, Frame};
use tokio::sync::{Semaphore, SemaphorePermit};

/// So many of the largest bodies may be on their way at once.
const LARGEST_AT_ONCE: usize = 2;
const PERMIT_BYTES: usize = 1 << 10;
/// What a gRPC message begins with: a flag, and the length in four bytes, most significant first.
const PREFIX: usize = 5;

pub struct Memory {
    pub max_bytes: usize,
    permits: Semaphore,
}

impl Memory {
    pub fn new(max_bytes: usize) -> Self {
        let permits = Semaphore::new(LARGEST_AT_ONCE * permits_for(max_bytes));
        Self { max_bytes, permits }
    }

    /// Waits until there is room for a body; it is taken until the permit is dropped. None for a body
    /// beyond the limit.
    pub async fn room(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        if bytes > self.max_bytes {
            return None;
        }
        let permits = permits_for(bytes) as u32;
        self.permits.acquire_many(permits).await.ok()
    }

    /// Waits until there is room for a gRPC message, which says its length before it comes. What is
    /// too long, or no message, is passed on without: it will be refused.
    pub async fn admit<B: Body<Data = Bytes> + Unpin>(
        &self,
        mut body: B,
    ) -> (
        StreamBody<impl Stream<Item = Result<Frame<Bytes>, B::Error>> + use<B>>,
        Option<SemaphorePermit<'_>>,
    ) {
        let mut start = BytesMut::new();
        let mut other = None;
        while start.len() < PREFIX && other.is_none() {
            match body.frame().await.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => start.extend_from_slice(&data),
                Some(Ok(Err(trailers))) => other = Some(Some(Ok(trailers))),
                Some(Err(error)) => other = Some(Some(Err(error))),
                None => other = Some(None),
            }
        }
        let permit = match start.get(1..PREFIX).map(<[u8; 4]>::try_from) {
            Some(Ok(length)) => self.room(u32::from_be_bytes(length) as usize).await,
            _ => None,
        };
        let begun = stream::iter([Ok(Frame::data(start.freeze()))]);
        let rest = stream::iter(other.flatten()).chain(BodyStream::new(body));
        (StreamBody::new(begun.chain(rest)), permit)
    }
}

fn permits_for(bytes: usize) -> usize {
    bytes / PERMIT_BYTES + 1
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A message that says it has `len` bytes, in pieces of `size`.
    fn message(
        len: u32,
        body: &[u8],
        size: usize,
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let whole = [&[0], &len.to_be_bytes()[..], body].concat();
        let pieces: Vec<_> = whole.chunks(size).map(Bytes::copy_from_slice).collect();
        StreamBody::new(stream::iter(
            pieces.into_iter().map(|piece| Ok(Frame::data(piece))),
        ))
    }

    #[tokio::test]
    async fn a_message_passes_unchanged_however_it_is_cut_and_what_is_too_long_is_passed_on() {
        let memory = Memory::new(1000);
        for size in [1, 2, 4, 5, 6, 100] {
            for (len, admitted) in [(20, true), (1001, false)] {
                let (body, permit) = memory.admit(message(len, &[7; 20], size)).await;
                let passed = BodyExt::collect(body).await.unwrap().to_bytes();
                let expected = BodyExt::collect(message(len, &[7; 20], 100)).await.unwrap();
                assert_eq!(passed, expected.to_bytes());
                assert_eq!(permit.is_some(), admitted);
            }
        }
        let piece = Ok::<_, Infallible>(Frame::data("\0\0".into()));
        let broken = StreamBody::new(stream::iter([piece]));
        let (body, permit) = memory.admit(broken).await;
        let passed = BodyExt::collect(body).await.unwrap().to_bytes();
        assert_eq!((passed.len(), permit.is_none()), (2, true));
    }

    #[tokio::test]
    async fn beyond_two_of_the_largest_the_next_waits_until_one_is_done() {
        let len = 1 << 20;
        let memory = Memory::new(len);
        let next = || message(len as u32, &[], 5);
        let mut held = vec![];
        for _ in 0..LARGEST_AT_ONCE {
            held.push(memory.admit(next()).await.1);
        }
        let mut waiting = Box::pin(memory.admit(next()));
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, &mut waiting).await.is_err());
        held.pop();
        waiting.await;
    }
}

//! Memory for messages on their way in: a gRPC message says its length before it comes, and the
//! rest of it is not read until there is room.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// So many of the largest messages may be on their way at once; more of them wait.
const LARGEST_AT_ONCE: usize = 2;
const PERMIT_BYTES: usize = 1 << 10;
/// A flag, and the length in four bytes, most significant first.
const PREFIX: usize = 5;

pub struct Admission {
    max_bytes: usize,
    memory: Arc<Semaphore>,
}

/// Keeps the memory of a message until the request is done.
pub type Hold = Arc<OnceLock<OwnedSemaphorePermit>>;

impl Admission {
    pub fn new(max_bytes: usize) -> Self {
        let permits = LARGEST_AT_ONCE * permits_for(max_bytes);
        Self {
            max_bytes,
            memory: Arc::new(Semaphore::new(permits)),
        }
    }

    pub fn admit<B>(&self, body: B) -> (Admitted<B>, Hold) {
        let hold = Hold::default();
        let admitted = Admitted {
            body,
            max_bytes: self.max_bytes,
            memory: self.memory.clone(),
            hold: hold.clone(),
            state: State::Start(BytesMut::new()),
        };
        (admitted, hold)
    }
}

fn permits_for(bytes: usize) -> usize {
    bytes / PERMIT_BYTES + 1
}

/// A request's body that waits for memory before its message is read.
pub struct Admitted<B> {
    body: B,
    max_bytes: usize,
    memory: Arc<Semaphore>,
    hold: Hold,
    state: State,
}

enum State {
    /// What came before the length was known.
    Start(BytesMut),
    Waiting(Acquiring, Bytes),
    Through,
}

type Acquiring =
    Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + 'static>>;

impl<B: Body<Data = Bytes> + Unpin> Body for Admitted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                State::Start(start) => {
                    let data = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                        Some(Ok(frame)) if frame.is_data() => frame.into_data().ok(),
                        // No message at all, or a broken one: not for us to judge.
                        other => return Poll::Ready(other),
                    };
                    start.extend_from_slice(&data.unwrap_or_default());
                    if start.len() < PREFIX {
                        continue;
                    }
                    let start = std::mem::take(start).freeze();
                    let len = u32::from_be_bytes(start[1..PREFIX].try_into().expect("four bytes"));
                    if len as usize > this.max_bytes {
                        // It will be refused unread.
                        this.state = State::Through;
                        return Poll::Ready(Some(Ok(Frame::data(start))));
                    }
                    let permits = permits_for(len as usize) as u32;
                    let acquiring = this.memory.clone().acquire_many_owned(permits);
                    this.state = State::Waiting(Box::pin(acquiring), start);
                }
                State::Waiting(acquiring, start) => {
                    if let Ok(permit) = ready!(acquiring.as_mut().poll(context)) {
                        let _ = this.hold.set(permit);
                    }
                    let start = std::mem::take(start);
                    this.state = State::Through;
                    return Poll::Ready(Some(Ok(Frame::data(start))));
                }
                State::Through => return Pin::new(&mut this.body).poll_frame(context),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Through) && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::time::Duration;

    use http_body_util::BodyExt;
    use tokio::time::timeout;

    use super::*;

    /// A body of these pieces.
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

    /// A message that says it has `len` bytes, in pieces of `size`.
    fn message(len: u32, body: &[u8], size: usize) -> (Pieces, Vec<u8>) {
        let whole = [&[0], &len.to_be_bytes()[..], body].concat();
        let pieces = whole.chunks(size).map(Bytes::copy_from_slice).collect();
        (Pieces(pieces), whole)
    }

    async fn read(body: impl Body<Data = Bytes, Error = Infallible>) -> Vec<u8> {
        body.collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn a_message_passes_unchanged_however_it_is_cut() {
        let admission = Admission::new(1000);
        for size in [1, 2, 4, 5, 6, 100] {
            let (pieces, whole) = message(20, &[7; 20], size);
            assert_eq!(read(admission.admit(pieces).0).await, whole);
        }
        for broken in [&b""[..], b"\0\0"] {
            let pieces = Pieces(broken.chunks(1).map(Bytes::copy_from_slice).collect());
            let (body, hold) = admission.admit(pieces);
            read(body).await;
            assert!(hold.get().is_none());
        }
    }

    #[tokio::test]
    async fn beyond_two_of_the_largest_the_next_waits_until_one_is_done() {
        let len = 1 << 20;
        let admission = Admission::new(len);
        let next = || admission.admit(message(len as u32, &[], 5).0);
        let mut held = vec![];
        for _ in 0..LARGEST_AT_ONCE {
            let (body, hold) = next();
            read(body).await;
            held.push(hold);
        }
        let (body, _hold) = next();
        let mut waiting = Box::pin(read(body));
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, &mut waiting).await.is_err());
        held.pop();
        waiting.await;
    }

    #[tokio::test]
    async fn what_is_too_long_is_passed_on_to_be_refused() {
        let admission = Admission::new(1000);
        let (pieces, whole) = message(1001, &[7; 20], 100);
        let (body, hold) = admission.admit(pieces);
        assert_eq!(read(body).await, whole);
        assert!(hold.get().is_none());
    }
}

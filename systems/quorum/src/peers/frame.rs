//! Messages on a connection between two nodes, cut into frames.
//!
//! A frame is `length: u32 | message: u64 | first: u8 | payload`, little-endian. The payload of a
//! message's first frame starts with `head length: u32 | body length: u64 | head`. Messages take
//! turns frame by frame, so that a small one never waits behind 100 MB.

use std::collections::{HashMap, VecDeque};
use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::UnboundedReceiver;

/// Body bytes in one frame; also about what one write to the socket carries.
const FRAME_BODY: usize = 64 << 10;
const FRAME_HEADER: usize = 4 + 8 + 1;
const START: usize = 4 + 8;
/// Heads are commands and answers; the longest is a page of a listing.
const MAX_HEAD: usize = 64 << 20;

/// What is sent: a head that is encoded by those who use the connection, and a body that is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    pub head: Bytes,
    pub body: Bytes,
}

pub struct Outgoing {
    id: u64,
    message: Message,
    started: bool,
}

impl Outgoing {
    pub fn new(id: u64, message: Message) -> Self {
        Self {
            id,
            message,
            started: false,
        }
    }

    /// Appends the next frame; true if the message is complete with it.
    fn encode(&mut self, buffer: &mut BytesMut) -> bool {
        let Message { head, body } = &mut self.message;
        let start = if self.started { 0 } else { START + head.len() };
        let part = body.split_to(body.len().min(FRAME_BODY));
        buffer.reserve(FRAME_HEADER + start + part.len());
        buffer.put_u32_le((start + part.len()) as u32);
        buffer.put_u64_le(self.id);
        buffer.put_u8(u8::from(!self.started));
        if !self.started {
            buffer.put_u32_le(head.len() as u32);
            buffer.put_u64_le((part.len() + body.len()) as u64);
            buffer.put_slice(head);
            self.started = true;
        }
        buffer.put_slice(&part);
        body.is_empty()
    }
}

/// Writes messages as they come until all senders are gone. With `in_halves` (planted) the second
/// half of what is written waits for the peer's acknowledgement of the first.
pub async fn write_all(
    mut socket: impl AsyncWrite + Unpin,
    mut queue: UnboundedReceiver<Outgoing>,
    in_halves: bool,
) -> io::Result<()> {
    let mut turn: VecDeque<Outgoing> = VecDeque::new();
    let mut buffer = BytesMut::new();
    loop {
        if turn.is_empty() {
            match queue.recv().await {
                Some(outgoing) => turn.push_back(outgoing),
                None => return Ok(()),
            }
        }
        while let Ok(outgoing) = queue.try_recv() {
            turn.push_back(outgoing);
        }
        buffer.clear();
        while buffer.len() < FRAME_BODY {
            let Some(mut outgoing) = turn.pop_front() else {
                break;
            };
            if !outgoing.encode(&mut buffer) {
                turn.push_back(outgoing);
            }
        }
        let first = if in_halves {
            buffer.len().div_ceil(2)
        } else {
            buffer.len()
        };
        socket.write_all(&buffer[..first]).await?;
        socket.write_all(&buffer[first..]).await?;
    }
}

pub struct Reader<R> {
    socket: BufReader<R>,
    max_body: usize,
    unfinished: HashMap<u64, Unfinished>,
}

struct Unfinished {
    head: Bytes,
    body: BytesMut,
    body_len: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(socket: R, max_body: usize) -> Self {
        Self {
            socket: BufReader::with_capacity(FRAME_BODY, socket),
            max_body,
            unfinished: HashMap::new(),
        }
    }

    /// Reads one frame: the message it belongs to, and the whole of it if that was its last.
    pub async fn frame(&mut self) -> io::Result<(u64, Option<Message>)> {
        let mut header = [0; FRAME_HEADER];
        self.socket.read_exact(&mut header).await?;
        let mut header = &header[..];
        let mut left = header.get_u32_le() as usize;
        let id = header.get_u64_le();
        if header.get_u8() == 1 {
            left = left
                .checked_sub(START)
                .ok_or_else(|| bad("a short frame"))?;
            let head_len = self.socket.read_u32_le().await? as usize;
            let body_len = usize::try_from(self.socket.read_u64_le().await?).unwrap_or(usize::MAX);
            if head_len > MAX_HEAD || body_len > self.max_body {
                return Err(bad("a message beyond the limit"));
            }
            left = left
                .checked_sub(head_len)
                .ok_or_else(|| bad("a short frame"))?;
            let mut head = BytesMut::with_capacity(head_len);
            self.read_into(&mut head, head_len).await?;
            let message = Unfinished {
                head: head.freeze(),
                body: BytesMut::with_capacity(body_len),
                body_len,
            };
            self.unfinished.insert(id, message);
        }
        let mut message = self
            .unfinished
            .remove(&id)
            .ok_or_else(|| bad("a frame of no message"))?;
        if message.body.len() + left > message.body_len {
            return Err(bad("a body longer than it said"));
        }
        self.read_into(&mut message.body, left).await?;
        if message.body.len() < message.body_len {
            self.unfinished.insert(id, message);
            return Ok((id, None));
        }
        let message = Message {
            head: message.head,
            body: message.body.freeze(),
        };
        Ok((id, Some(message)))
    }

    async fn read_into(&mut self, target: &mut BytesMut, len: usize) -> io::Result<()> {
        let mut source = (&mut self.socket).take(len as u64);
        while source.limit() > 0 {
            if source.read_buf(target).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} was received"))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn message(head: &'static str, body: Vec<u8>) -> Message {
        Message {
            head: Bytes::from_static(head.as_bytes()),
            body: body.into(),
        }
    }

    /// Sends the messages over a pipe; returns them in the order in which they were complete.
    async fn through_a_pipe(
        messages: Vec<Message>,
        max_body: usize,
    ) -> io::Result<Vec<(u64, Message)>> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (queue, outgoing) = unbounded_channel();
        let count = messages.len();
        for (id, message) in messages.into_iter().enumerate() {
            assert!(queue.send(Outgoing::new(id as u64, message)).is_ok());
        }
        let writer = tokio::spawn(write_all(near, outgoing, false));
        let mut reader = Reader::new(far, max_body);
        let mut received = vec![];
        while received.len() < count {
            if let (id, Some(message)) = reader.frame().await? {
                received.push((id, message));
            }
        }
        drop(queue);
        writer.await.unwrap()?;
        Ok(received)
    }

    #[tokio::test]
    async fn messages_of_any_size_arrive_whole() {
        let sizes = [0, 1, FRAME_BODY - 1, FRAME_BODY, FRAME_BODY + 1, 1_000_000];
        for size in sizes {
            let body: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let sent = message("head", body);
            let received = through_a_pipe(vec![sent.clone()], 1 << 20).await.unwrap();
            assert_eq!(received, [(0, sent)]);
        }
    }

    #[tokio::test]
    async fn a_small_message_overtakes_a_large_one() {
        let large = message("large", vec![1; 10 << 20]);
        let small = message("small", vec![2; 10]);
        let received = through_a_pipe(vec![large, small], 10 << 20).await.unwrap();
        let order: Vec<u64> = received.into_iter().map(|(id, _)| id).collect();
        assert_eq!(order, [1, 0]);
    }

    #[tokio::test]
    async fn a_message_beyond_the_limit_is_refused_before_it_is_read() {
        let result = through_a_pipe(vec![message("head", vec![0; 1001])], 1000).await;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

//! Connections from peers: requests come in, each is answered when it is done, in any order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

use super::frame::{Message, Outgoing, Reader, write_all};
use crate::log::say;

/// A peer that lives pings every two seconds.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Answers what peers ask.
#[async_trait::async_trait]
pub trait Handler: Send + Sync {
    async fn handle(&self, request: Message) -> Message;
}

/// Takes note of peers that connect.
pub trait Greeter: Send + Sync {
    /// # Errors
    /// Why the sender of this greeting is refused.
    fn greeted_with(&self, greeting: &[u8]) -> Result<(), String>;
}

/// Accepts peers, whose messages have bodies of at most `max_body` bytes; never returns.
pub async fn accept(
    listener: TcpListener,
    peers: Arc<dyn Greeter>,
    handler: Arc<dyn Handler>,
    max_body: usize,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let (peers, handler) = (peers.clone(), handler.clone());
                tokio::spawn(async move {
                    // The peer that made the connection reports its end.
                    let _ = serve(socket, &*peers, handler, max_body).await;
                });
            }
            Err(error) => {
                say(format_args!("cannot accept a peer: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(
    socket: TcpStream,
    peers: &dyn Greeter,
    handler: Arc<dyn Handler>,
    max_body: usize,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (reading, writing) = socket.into_split();
    let (queue, outgoing) = unbounded_channel();
    let writer = tokio::spawn(write_all(writing, outgoing, false));
    let mut reader = Reader::new(reading, max_body);
    let mut greeted = false;
    let ended = loop {
        let frame = timeout(SILENCE_MAX, reader.frame()).await;
        let (id, message) = match frame {
            Ok(Ok((id, Some(message)))) => (id, message),
            Ok(Ok((_, None))) => continue,
            Ok(Err(error)) => break Err(error),
            Err(_) => break Err(io::ErrorKind::TimedOut.into()),
        };
        if !greeted {
            let refusal = peers.greeted_with(&message.head).err();
            greeted = refusal.is_none();
            let head = Bytes::from(refusal.unwrap_or_default());
            let body = Bytes::new();
            let _ = queue.send(Outgoing::new(id, Message { head, body }));
            if !greeted {
                break Ok(());
            }
        } else if message.head.is_empty() {
            let _ = queue.send(Outgoing::new(id, Message::default()));
        } else {
            let (queue, handler) = (queue.clone(), handler.clone());
            tokio::spawn(async move {
                let answer = handler.handle(message).await;
                let _ = queue.send(Outgoing::new(id, answer));
            });
        }
    };
    drop(queue);
    if ended.is_err() {
        writer.abort();
    }
    ended
}

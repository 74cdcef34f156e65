//! Connections from peers: requests come in, each is answered when it is done, in any order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

use super::frame::{Message, Outgoing, Reader, write_all};
use super::{Handler, Peers};
use crate::log::say;

/// A peer that lives pings every two seconds.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Accepts peers; never returns.
pub async fn accept(listener: TcpListener, peers: Arc<Peers>, handler: Arc<dyn Handler>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let (peers, handler) = (peers.clone(), handler.clone());
                tokio::spawn(async move {
                    // The peer that made the connection reports its end.
                    let _ = serve(socket, &peers, handler).await;
                });
            }
            Err(error) => {
                say(format_args!("cannot accept a peer: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(socket: TcpStream, peers: &Peers, handler: Arc<dyn Handler>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (reading, writing) = socket.into_split();
    let (queue, outgoing) = unbounded_channel();
    let writer = tokio::spawn(write_all(writing, outgoing, false));
    let mut reader = Reader::new(reading, peers.max_body);
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

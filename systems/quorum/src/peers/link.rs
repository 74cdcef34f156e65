//! The kept connection from this node to one peer: requests go out on it, their answers come back.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::frame::{Message, Outgoing, Reader, write_all};
use crate::disturbances::Flags;
use crate::log::say;

/// Longer than a round trip over the slowest path that is emulated, a few seconds: one for TCP's
/// handshake, and another for the greeting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// The connection is pinged this often, so that there is something for the peer to acknowledge, and
/// given up when nothing was acknowledged for so long. Without that, a connection that outlived a
/// partition would wait for TCP's retransmission timer, which doubles up to two minutes. So it takes
/// at most about three seconds after a partition has ended until peers talk again: either this runs
/// out, or the next retransmission or attempt to connect comes. A peer that is merely stopped keeps
/// its connection: its kernel acknowledges.
const PING_EVERY: Duration = Duration::from_secs(2);
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(6);

/// Why a peer did not answer.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerError {
    NotConnected,
    Broken,
    TimedOut(Duration),
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => write!(f, "not connected"),
            Self::Broken => write!(f, "the connection broke"),
            Self::TimedOut(after) => write!(f, "no answer within {} s", after.as_secs_f64()),
        }
    }
}

pub struct Link {
    pub name: String,
    address: SocketAddr,
    planted: Flags,
    /// Where requests are queued; None while there is no connection.
    queue: Mutex<Option<Queue>>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next_id: AtomicU64,
    connected: watch::Sender<bool>,
    /// Whether the peer has connected to this node.
    greeted: watch::Sender<bool>,
    wake: Notify,
}

type Queue = mpsc::UnboundedSender<Outgoing>;

/// A request on its way.
struct Waiting {
    answer: oneshot::Sender<Message>,
    /// When a part of the answer came in last.
    heard: Option<Instant>,
}

/// A connection on which both sides said who they are.
struct Connection {
    reader: Reader<OwnedReadHalf>,
    writer: JoinHandle<io::Result<()>>,
    queue: Queue,
}

impl Link {
    pub fn new(name: String, address: SocketAddr, planted: Flags) -> Self {
        Self {
            name,
            address,
            planted,
            queue: Mutex::default(),
            waiting: Mutex::default(),
            next_id: AtomicU64::new(1),
            connected: watch::Sender::new(false),
            greeted: watch::Sender::new(false),
            wake: Notify::new(),
        }
    }

    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Waits until the connections stand in both directions.
    pub async fn until_connected(&self) {
        for state in [&self.connected, &self.greeted] {
            let mut state = state.subscribe();
            let waited = state.wait_for(|&state| state).await;
            waited.expect("the sender lives in self");
        }
    }

    /// The peer has connected to this node, so it is worth trying at once.
    pub fn greeted(&self) {
        self.greeted.send_replace(true);
        self.wake.notify_one();
    }

    /// Sends a message and waits for its answer, at most `limit` for its first part and for each
    /// further one.
    pub async fn request(&self, message: Message, limit: Duration) -> Result<Message, PeerError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, mut answered) = oneshot::channel();
        let heard = None;
        lock(&self.waiting).insert(id, Waiting { answer, heard });
        let queued = match &*lock(&self.queue) {
            Some(queue) => queue.send(Outgoing::new(id, message)).is_ok(),
            None => false,
        };
        if !queued {
            lock(&self.waiting).remove(&id);
            return Err(PeerError::NotConnected);
        }
        let mut deadline = Instant::now() + limit;
        loop {
            match timeout_at(deadline, &mut answered).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => return Err(PeerError::Broken),
                Err(_) => {
                    let mut waiting = lock(&self.waiting);
                    let heard = waiting.get(&id).and_then(|waiting| waiting.heard);
                    deadline = heard.map_or(deadline, |heard| heard + limit);
                    if deadline <= Instant::now() {
                        waiting.remove(&id);
                        return Err(PeerError::TimedOut(limit));
                    }
                }
            }
        }
    }

    /// Connects, and connects again whenever the connection is lost; never returns.
    pub async fn keep_connected(&self, hello: Bytes, max_body: usize) {
        let (name, address) = (&self.name, self.address);
        let mut backoff = BACKOFF_FIRST;
        let mut told = String::new();
        loop {
            let connected = tokio::select! {
                connected = self.connect(&hello, max_body) => connected,
                // The peer came through: an attempt that waits for TCP's timer is worth another.
                () = self.wake.notified() => self.connect(&hello, max_body).await,
            };
            let error = match connected {
                Ok(connection) => {
                    backoff = BACKOFF_FIRST;
                    say(format_args!("connected to {name} ({address})"));
                    let error = self.serve(connection).await;
                    self.disconnected();
                    error
                }
                Err(error) => error,
            };
            let error = match error.kind() {
                io::ErrorKind::UnexpectedEof => "closed the connection".to_owned(),
                _ => error.to_string(),
            };
            if error != told {
                say(format_args!("{name} ({address}): {error}"));
                told = error;
            }
            // It fails at once if it was not worth it; the wait stays bounded either way.
            let _ = timeout(backoff, self.wake.notified()).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    async fn connect(&self, hello: &Bytes, max_body: usize) -> io::Result<Connection> {
        let handshake = timeout(CONNECT_TIMEOUT, TcpStream::connect(self.address)).await;
        let socket = handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let greeting = async {
            socket.set_nodelay(!self.planted.nagle)?;
            SockRef::from(&socket).set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
            let (reading, writing) = socket.into_split();
            let (queue, outgoing) = mpsc::unbounded_channel();
            let writer = tokio::spawn(write_all(writing, outgoing, self.planted.nagle));
            let mut reader = Reader::new(reading, max_body);
            let greeting = Message {
                head: hello.clone(),
                body: Bytes::new(),
            };
            let _ = queue.send(Outgoing::new(0, greeting));
            let refusal = match reader.frame().await? {
                (_, Some(answer)) => answer.head,
                (_, None) => return Err(io::ErrorKind::InvalidData.into()),
            };
            if !refusal.is_empty() {
                let refusal = String::from_utf8_lossy(&refusal).into_owned();
                return Err(io::Error::other(refusal));
            }
            Ok(Connection {
                reader,
                writer,
                queue,
            })
        };
        let greeted = timeout(CONNECT_TIMEOUT, greeting).await;
        greeted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Hands out answers until the connection fails.
    async fn serve(&self, mut connection: Connection) -> io::Error {
        *lock(&self.queue) = Some(connection.queue.clone());
        self.connected.send_replace(true);
        let error = tokio::select! {
            error = self.receive(&mut connection.reader) => error,
            _ = &mut connection.writer => io::ErrorKind::BrokenPipe.into(),
            () = ping(&connection.queue, self.planted.heartbeat_or(PING_EVERY)) => unreachable!("pinging has no end"),
        };
        connection.writer.abort();
        error
    }

    async fn receive(&self, reader: &mut Reader<OwnedReadHalf>) -> io::Error {
        loop {
            match reader.frame().await {
                Ok((id, Some(answer))) => {
                    if let Some(waiting) = lock(&self.waiting).remove(&id) {
                        let _ = waiting.answer.send(answer);
                    }
                }
                Ok((id, None)) => {
                    if let Some(waiting) = lock(&self.waiting).get_mut(&id) {
                        waiting.heard = Some(Instant::now());
                    }
                }
                Err(error) => return error,
            }
        }
    }

    fn disconnected(&self) {
        *lock(&self.queue) = None;
        self.connected.send_replace(false);
        // Dropping the senders tells those who wait.
        lock(&self.waiting).clear();
    }
}

async fn ping(queue: &Queue, every: Duration) {
    loop {
        sleep(every).await;
        let _ = queue.send(Outgoing::new(0, Message::default()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of a link's lock panics")
}

//! Serves connections: a thread each, one request after the other.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oneshot::body;
use rustix::net::sockopt;
use serde_json::json;

use crate::answer::Answer;
use crate::request::{Request, Requests};
use crate::store::{Reply, Store};

/// A longer body is written behind its head, not copied to it.
const COPIED_BYTES: usize = 64 * 1024;

/// What the connections share.
pub struct Server {
    store: Store,
    answers: Vec<Answer>,
    answered: AtomicUsize,
    connections: AtomicUsize,
    journal: bool,
}

/// What becomes of the connection after an answer.
#[derive(PartialEq, Eq)]
enum After {
    Keep,
    Close,
}

impl Server {
    pub fn new(store: Store, mut answers: Vec<Answer>, journal: bool) -> Self {
        if answers.is_empty() {
            answers.push(Answer::Ok);
        }
        let (answered, connections) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Server {
            store,
            answers,
            answered,
            connections,
            journal,
        }
    }

    /// How many requests have got an answer, or none, as ordered.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst) as u64
    }

    fn next_answer(&self) -> &Answer {
        let index = self.answered.fetch_add(1, Ordering::SeqCst);
        self.answers
            .get(index)
            .unwrap_or_else(|| &self.answers[self.answers.len() - 1])
    }

    fn keeps_bodies(&self) -> bool {
        self.journal || matches!(self.store, Store::Memory(_))
    }

    fn write_journal(&self, connection: usize, request: &Request) {
        if self.journal {
            let line = json!({
                "connection": connection,
                "method": request.method,
                "target": request.target,
                "headers": request.headers,
                "body_bytes": request.body.len(),
                "body_sha256": body::sha256_of([request.body.as_slice()]),
            });
            // One write a line, so that two connections never mix theirs.
            let _ = io::stdout()
                .lock()
                .write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// Takes connections until the process ends.
pub fn accept(listener: &TcpListener, server: &Arc<Server>) {
    for stream in listener.incoming().flatten() {
        let server = server.clone();
        // A client that goes away, or is sent away, is no error here.
        std::thread::spawn(move || connection(&server, stream));
    }
}

fn connection(server: &Server, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let number = server.connections.fetch_add(1, Ordering::SeqCst);
    let mut requests = Requests::new(stream.try_clone()?);
    while let Some((mut request, body_bytes)) = requests.head()? {
        let answer = server.next_answer();
        match answer {
            Answer::Early(status, error) => {
                server.write_journal(number, &request);
                let reply = match error {
                    Some(code) => Reply::error(*status, code),
                    None => Reply::new(*status, []),
                };
                stream.write_all(&framed(&reply, "connection: close\r\n"))?;
                // Closing with unread bytes would reset the connection under the answer.
                stream.shutdown(std::net::Shutdown::Write)?;
                std::thread::sleep(Duration::from_millis(200));
                return Ok(());
            }
            Answer::NoRead => std::thread::sleep(Duration::MAX),
            _ => request.body = requests.body(body_bytes, server.keeps_bodies())?,
        }
        server.write_journal(number, &request);
        let reply = server.store.reply(&request);
        if write(answer, &reply, &mut stream)? == After::Close {
            break;
        }
    }
    Ok(())
}

fn write(answer: &Answer, reply: &Reply, stream: &mut TcpStream) -> io::Result<After> {
    if *answer == Answer::Ok && reply.body.len() > COPIED_BYTES && !reply.head_only {
        stream.write_all(sized_head(reply, "").as_bytes())?;
        stream.write_all(&reply.body)?;
        return Ok(After::Keep);
    }
    let whole = framed(reply, "");
    let half = whole.len()
        - if reply.head_only {
            0
        } else {
            reply.body.len().div_ceil(2)
        };
    let pause = Duration::from_millis(20);
    match answer {
        Answer::Ok | Answer::Early(..) => stream.write_all(&whole)?,
        Answer::Wait(time) => {
            std::thread::sleep(*time);
            stream.write_all(&whole)?;
        }
        Answer::WaitBody(time) => {
            stream.write_all(&whole[..half])?;
            std::thread::sleep(*time);
            stream.write_all(&whole[half..])?;
        }
        Answer::Split => {
            stream.set_nodelay(false)?;
            let head = whole.len() - reply.body.len();
            stream.write_all(&whole[..head])?;
            stream.write_all(&whole[head..])?;
        }
        Answer::Chunked => {
            stream.write_all(head(reply.status, "transfer-encoding: chunked\r\n").as_bytes())?;
            // An odd size, so that words and segments are cut anywhere.
            for piece in reply.body.chunks(reply.body.len() / 3 + 1) {
                write!(stream, "{:x};name=value\r\n", piece.len())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\nx-trailer: yes\r\n\r\n")?;
        }
        Answer::UntilClose => {
            stream.write_all(head(reply.status, "").as_bytes())?;
            stream.write_all(&reply.body)?;
            return Ok(After::Close);
        }
        Answer::Continue => {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            std::thread::sleep(pause);
            stream.write_all(&whole)?;
        }
        Answer::ConnectionClose => {
            stream.write_all(&framed(reply, "connection: close\r\n"))?;
            return Ok(After::Close);
        }
        Answer::CloseAfter => {
            stream.write_all(&whole)?;
            return Ok(After::Close);
        }
        Answer::Stray => {
            let mut more = whole;
            more.extend_from_slice(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
            stream.write_all(&more)?;
        }
        Answer::WrongBody => {
            let mut wrong = whole;
            if let Some(last) = wrong.last_mut() {
                *last ^= 1;
            }
            stream.write_all(&wrong)?;
        }
        Answer::Status(status, code) => {
            let error = match code {
                Some(code) => Reply::error(*status, code),
                None => Reply::new(*status, []),
            };
            let error = Reply {
                head_only: reply.head_only,
                ..error
            };
            stream.write_all(&framed(&error, ""))?;
        }
        Answer::Redirect(status, location) => {
            let elsewhere = Reply::new(*status, []);
            stream.write_all(&framed(&elsewhere, &format!("location: {location}\r\n")))?;
        }
        Answer::Truncate => {
            stream.write_all(&whole[..half])?;
            return Ok(After::Close);
        }
        Answer::TruncateChunked => {
            stream.write_all(head(reply.status, "transfer-encoding: chunked\r\n").as_bytes())?;
            stream.write_all(b"4\r\nbody\r\n")?;
            return Ok(After::Close);
        }
        Answer::Garbage => {
            stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")?;
            return Ok(After::Close);
        }
        Answer::Close => return Ok(After::Close),
        Answer::Reset => {
            reset_on_close(stream)?;
            return Ok(After::Close);
        }
        Answer::ResetBody => {
            stream.write_all(&whole[..half])?;
            std::thread::sleep(pause);
            reset_on_close(stream)?;
            return Ok(After::Close);
        }
        Answer::Never | Answer::NoRead => std::thread::sleep(Duration::MAX),
    }
    Ok(After::Keep)
}

/// A linger time of zero makes the coming close a reset.
fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

fn head(status: u16, headers: &str) -> String {
    format!("HTTP/1.1 {status} As Ordered\r\nserver: null\r\n{headers}\r\n")
}

/// Head and body in one piece, which goes out in one write.
fn framed(reply: &Reply, headers: &str) -> Vec<u8> {
    let mut bytes = sized_head(reply, headers).into_bytes();
    if !reply.head_only {
        bytes.extend_from_slice(&reply.body);
    }
    bytes
}

fn sized_head(reply: &Reply, headers: &str) -> String {
    let length = match reply.status {
        204 => String::new(),
        _ => format!("content-length: {}\r\n", reply.body.len()),
    };
    head(reply.status, &format!("{length}{headers}"))
}

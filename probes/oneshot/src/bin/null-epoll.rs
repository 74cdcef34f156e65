//! An S3 server that costs as little as one can: what `benchmarks/generator` measures `oneshot load`
//! against.
//!
//! One thread, one epoll, canned answers, no signature looked at: GET and HEAD have the object of
//! `--object-seed`, whatever the key; what is put is read and forgotten. Where `null-server` has a
//! thread a connection and can misbehave, this one is only fast. It lives until its standard input is
//! closed, so that it never outlives whoever started it, and then tells the CPU time that it took.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use clap::{Arg, Command, value_parser};
use oneshot::body;
use oneshot::load::usage;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{CreateFlags, Event, EventData, EventFlags, add, create, wait};

const LISTENER: u64 = 0;
const INPUT: u64 = 1;
const EVENTS: usize = 256;
const READ_BYTES: usize = 256 * 1024;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("null-epoll: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let matches = command().get_matches();
    let number = |name: &str| *matches.get_one::<u64>(name).expect("has a default");
    let mut object = vec![0; number("object-bytes") as usize];
    body::fill(number("object-seed"), 0, &mut object);
    let listener = TcpListener::bind(matches.get_one::<String>("listen").expect("has a default"))?;
    println!("{{\"listening\":\"{}\"}}", listener.local_addr()?);
    listener.set_nonblocking(true)?;
    let mut server = Server {
        epoll: create(CreateFlags::CLOEXEC)?,
        listener,
        connections: HashMap::new(),
        answers: Answers::new(&object),
        piece: vec![0; READ_BYTES],
        requests: 0,
    };
    server.serve()?;
    let (user_ns, system_ns) = usage::of_process();
    println!(
        "{{\"requests\":{},\"cpu_ns\":{}}}",
        server.requests,
        user_ns + system_ns
    );
    Ok(())
}

struct Answers {
    get: Vec<u8>,
    head: Vec<u8>,
    put: Vec<u8>,
    delete: Vec<u8>,
}

impl Answers {
    fn new(object: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
            object.len()
        );
        Answers {
            get: [head.as_bytes(), object].concat(),
            head: head.into_bytes(),
            put: b"HTTP/1.1 200 OK\r\netag: \"0\"\r\ncontent-length: 0\r\n\r\n".to_vec(),
            delete: b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        }
    }
}

struct Server {
    epoll: std::os::fd::OwnedFd,
    listener: TcpListener,
    connections: HashMap<u64, Connection>,
    answers: Answers,
    piece: Vec<u8>,
    requests: u64,
}

struct Connection {
    stream: TcpStream,
    /// The beginning of a head that is not whole yet.
    head: Vec<u8>,
    /// What is still to come of a body that is put.
    body_left: usize,
    /// The answer that the kernel has not taken yet, from there on.
    unsent: Vec<u8>,
}

impl Server {
    fn serve(&mut self) -> io::Result<()> {
        let input = io::stdin();
        add(
            &self.epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        add(
            &self.epoll,
            &input,
            EventData::new_u64(INPUT),
            EventFlags::IN,
        )?;
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            match wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    INPUT => {
                        if io::stdin().lock().read(&mut [0; 64])? == 0 {
                            return Ok(());
                        }
                    }
                    number => {
                        if self.go_on(number).is_err() {
                            self.connections.remove(&number); // and with it from epoll
                        }
                    }
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let number = stream.as_raw_fd() as u64 + 2;
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            add(&self.epoll, &stream, EventData::new_u64(number), flags)?;
            let connection = Connection {
                stream,
                head: Vec::new(),
                body_left: 0,
                unsent: Vec::new(),
            };
            self.connections.insert(number, connection);
        }
        Ok(())
    }

    /// Does what a connection can do now. Err: it is over.
    fn go_on(&mut self, number: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(());
        };
        connection.send()?;
        loop {
            let length = match connection.stream.read(&mut self.piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.requests += connection.take(&self.piece[..length], &self.answers)?;
            if length < self.piece.len() {
                // Nothing is left: what comes after this is another event.
                return Ok(());
            }
        }
    }
}

impl Connection {
    /// Takes bytes that came; returns how many requests they ended.
    fn take(&mut self, mut piece: &[u8], answers: &Answers) -> io::Result<u64> {
        let mut ended = 0;
        while !piece.is_empty() {
            if self.body_left > 0 {
                let taken = self.body_left.min(piece.len());
                self.body_left -= taken;
                piece = &piece[taken..];
                if self.body_left == 0 {
                    self.answer(&answers.put)?;
                    ended += 1;
                }
                continue;
            }
            let seen = self.head.len();
            self.head.extend_from_slice(piece);
            let from = seen.saturating_sub(3);
            let Some(end) = self.head[from..]
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            else {
                return Ok(ended);
            };
            let end = from + end + 4;
            piece = &piece[end - seen..];
            self.head.truncate(end);
            let method = self.head[0];
            let body = if method == b'P' {
                body_bytes(&self.head)
            } else {
                0
            };
            self.head.clear();
            if body > 0 {
                self.body_left = body;
                continue;
            }
            ended += 1;
            self.answer(match method {
                b'G' => &answers.get,
                b'H' => &answers.head,
                b'D' => &answers.delete,
                _ => &answers.put,
            })?;
        }
        Ok(ended)
    }

    fn answer(&mut self, answer: &[u8]) -> io::Result<()> {
        let sent = match self.stream.write(answer) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.unsent.extend_from_slice(&answer[sent..]);
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn body_bytes(head: &[u8]) -> usize {
    const NAME: &[u8] = b"\r\ncontent-length: ";
    let Some(at) = head.windows(NAME.len()).position(|part| part == NAME) else {
        return 0;
    };
    head[at + NAME.len()..]
        .iter()
        .map_while(|byte| (*byte as char).to_digit(10))
        .fold(0, |bytes, digit| bytes * 10 + digit as usize)
}

fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .default_value(default)
            .value_parser(value_parser!(u64))
            .help(help)
    };
    Command::new("null-epoll")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An S3 server that costs as little as one can")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS:PORT")
                .default_value("127.0.0.1:0")
                .help("Where; the first line on standard output tells the port"),
        )
        .arg(number(
            "object-bytes",
            "1024",
            "The length of the object that every GET returns",
        ))
        .arg(number(
            "object-seed",
            "0",
            "The seed of that object's bytes",
        ))
}

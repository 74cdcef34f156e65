//! The least a client can do: a blocking socket, one fixed request, read until the answer is
//! complete, and thrown away. What `oneshot` is measured against in `benchmarks/probe/` and
//! `benchmarks/verify/`.
//!
//! Does COUNT requests, with a pause before each, and writes the nanoseconds of all as one JSON
//! array.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, target, count, pause_us] = arguments.as_slice() else {
        eprintln!("usage: bare-loop ADDRESS:PORT /BUCKET/KEY COUNT PAUSE_US");
        std::process::exit(2);
    };
    let count: usize = count.parse().map_err(io::Error::other)?;
    let pause = Duration::from_micros(pause_us.parse().map_err(io::Error::other)?);
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!("GET {target} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut buffer = vec![0u8; 256 << 10];

    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let started = Instant::now();
        stream.write_all(request.as_bytes())?;
        read_response(&mut stream, &mut buffer)?;
        durations.push(started.elapsed().as_nanos());
    }
    println!("{durations:?}");
    Ok(())
}

/// Reads one response that has a Content-Length, the body over and over into the same place.
fn read_response(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    let mut left = loop {
        filled += read(stream, &mut buffer[filled..])?;
        if let Some(head) = head_bytes(&buffer[..filled]) {
            break head + content_length(&buffer[..head])? - filled;
        }
    };
    while left > 0 {
        left -= read(stream, buffer)?;
    }
    Ok(())
}

fn read(stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
    match stream.read(into)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => Ok(length),
    }
}

fn head_bytes(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn content_length(head: &[u8]) -> io::Result<usize> {
    let head = std::str::from_utf8(head).map_err(io::Error::other)?;
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| io::Error::other("the response has no Content-Length"))
}

//! Sockets that clients connect to, and the HTTP on them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::disturbances::{Client, Flags};
use crate::log::say;

/// Four times HTTP/2's default: fewer pieces of a large message to handle.
const FRAME_BYTES: u32 = 64 << 10;
/// Requests under way on one connection; more of them wait at the client.
const STREAMS: u32 = 128;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// `what` is the option that the address comes from.
pub async fn listen(what: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| format!("cannot listen on {address} ({what}): {error}"))
}

/// Serves HTTP/1.1; never returns.
pub async fn serve_http1<B, F, E>(
    listener: TcpListener,
    planted: Flags,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
    E: Into<Error> + 'static,
{
    loop {
        let socket = accept(&listener, planted).await;
        let service = service_fn(answer.clone());
        tokio::spawn(async move {
            // A client that breaks off is its own business.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

/// Serves HTTP/2 without TLS or upgrade, with `windows` of flow control: how much a client may send
/// before it is told that it was taken in, in one stream and in all of a connection.
pub async fn serve_http2<B, F, E>(
    listener: TcpListener,
    planted: Flags,
    windows: (u32, u32),
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
    E: Into<Error> + 'static,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .initial_stream_window_size(windows.0)
        .initial_connection_window_size(windows.1)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(STREAMS);
    loop {
        let socket = accept(&listener, planted).await;
        let connection = builder.serve_connection(TokioIo::new(socket), service_fn(answer.clone()));
        tokio::spawn(async move {
            let _ = connection.await;
        });
    }
}

/// The next client, however long it takes.
async fn accept(listener: &TcpListener, planted: Flags) -> Client {
    loop {
        match try_accept(listener, planted).await {
            Ok(socket) => return socket,
            Err(error) => {
                say(format_args!("cannot accept a client: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn try_accept(listener: &TcpListener, planted: Flags) -> io::Result<Client> {
    let (socket, _) = listener.accept().await?;
    planted.on(socket)
}

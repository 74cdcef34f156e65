//! Sockets that clients connect to.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::disturbances::{Client, Flags};
use crate::log::say;

/// `what` is the option that the address comes from.
pub async fn listen(what: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| format!("cannot listen on {address} ({what}): {error}"))
}

/// Has `serve` answer each client on a task of its own; never returns.
pub async fn accept<F>(
    listener: TcpListener,
    planted: Flags,
    serve: impl Fn(TokioIo<Client>) -> F + Send,
) where
    F: Future<Output: Send> + Send + 'static,
{
    loop {
        match try_accept(&listener, planted).await {
            // A client that breaks off is its own business.
            Ok(socket) => drop(tokio::spawn(serve(TokioIo::new(socket)))),
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

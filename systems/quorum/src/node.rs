//! One node: its parts put together, its listeners, its start.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::args::Serve;
use crate::clock::Clock;
use crate::health::Health;
use crate::log::say;
use crate::op::Rounds;
use crate::peers::{Handler, Hello, Message, Peers};
use crate::protocol::{Choice, Members, Patience, PeerRequest, Protocol, encode};
use crate::replica::Replica;
use crate::store::Store;
use crate::{repair, s3};

/// Runs the node for ever.
///
/// # Errors
/// One readable line, if it cannot start.
pub async fn run(args: Serve) -> Result<Infallible, String> {
    let (own, leader) = args.places()?;
    let health_address = args.health()?;
    let s3_listener = listen("--s3", args.s3).await?;
    let peer_listener = listen("--peer-listen", args.peer_listen).await?;
    let health_listener = listen("/healthz", health_address).await?;
    let store = Store::open(&args.data)
        .map_err(|error| format!("cannot use --data {}: {error}", args.data.display()))?;

    let store = Arc::new(store);
    let clock = Arc::new(Clock::new(own));
    clock.observe(store.newest_version());
    let replica = Arc::new(Replica::new(store.clone(), clock.clone()));
    let hello = Hello::new(&args.name, args.cluster(leader));
    let others = (0..).zip(&args.peers).filter(|(id, _)| *id != own);
    let others = others.map(|(id, peer)| (id, peer.name.clone(), peer.address));
    let peers = Arc::new(Peers::new(others, hello, args.max_object_bytes as usize));
    let (repairs, repair_worker) = repair::channel();
    let members = Members {
        own,
        clock,
        replica: replica.clone(),
        peers: peers.clone(),
        repairs,
        patience: Patience(Duration::from_millis(args.peer_timeout_ms)),
    };
    tokio::spawn(repair_worker.run(members.clone()));
    let protocol = args.protocol.build(members, leader);
    peers.start(
        peer_listener,
        Arc::new(Answering {
            replica,
            protocol: protocol.clone(),
        }),
    );

    let health = Arc::new(Health {
        node: args.name.clone(),
        protocol: args.protocol.to_string(),
        leader: (args.protocol == Choice::Leader).then(|| args.peers[leader as usize].name.clone()),
        peers: peers.clone(),
        store,
    });
    tokio::spawn(serve_http(health_listener, move |request| {
        let health = health.clone();
        async move { health.answer(request).await }
    }));
    let api = s3::Api::new(protocol, &args);
    tokio::spawn(serve_http(s3_listener, move |request| {
        let api = api.clone();
        async move { api.answer(request).await }
    }));

    peers.until_all_connected().await;
    // Whoever started the node may have closed its end; that is no reason to stop.
    let _ = writeln!(std::io::stdout(), "ready");
    std::future::pending().await
}

async fn listen(what: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| format!("cannot listen on {address} ({what}): {error}"))
}

async fn serve_http<B, F, E>(
    listener: TcpListener,
    answer: impl Fn(hyper::Request<hyper::body::Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<hyper::Response<B>, E>> + Send + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    loop {
        match accept(&listener).await {
            Ok(socket) => {
                let service = service_fn(answer.clone());
                tokio::spawn(async move {
                    // A client that breaks off is its own business.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
            Err(error) => {
                say(format_args!("cannot accept a client: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (socket, _) = listener.accept().await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// What this node does for others.
struct Answering {
    replica: Arc<Replica>,
    protocol: Arc<dyn Protocol>,
}

#[async_trait::async_trait]
impl Handler for Answering {
    async fn handle(&self, request: Message) -> Message {
        let Message { head, body } = request;
        match postcard::from_bytes(&head) {
            Ok(PeerRequest::Command(command)) => {
                let (answer, body) = self.replica.carry_out(command, body).await;
                let head = encode(&answer);
                Message { head, body }
            }
            Ok(PeerRequest::Forward(op)) => {
                let rounds = Rounds::default();
                let outcome = self.protocol.run_forwarded(op, body, &rounds).await;
                let (outcome, body) = match outcome {
                    Ok((reply, body)) => (Ok(reply), body),
                    Err(failure) => (Err(failure), Bytes::new()),
                };
                let head = encode(&(outcome, rounds.count()));
                Message { head, body }
            }
            Err(error) => {
                let answer = crate::replica::Answer::Failed(error.to_string());
                let (head, body) = (encode(&answer), Bytes::new());
                Message { head, body }
            }
        }
    }
}

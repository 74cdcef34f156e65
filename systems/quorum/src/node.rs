//! One node: its parts put together, its listeners, its start.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::args::Serve;
use crate::clock::Clock;
use crate::defects::{Defects, UNFLUSHED_FOR};
use crate::disturbances;
use crate::health::Health;
use crate::listener::{accept, listen};
use crate::op::Rounds;
use crate::peers::{Handler, Hello, Message, Peers};
use crate::placement::{BUCKET, BUCKET_STATE};
use crate::protocol::Protocol;
use crate::replica::{Answer, Replica};
use crate::round::{Members, PeerRequest, encode};
use crate::store::Store;
use crate::{bob, s3};

/// Runs the node for ever.
///
/// # Errors
/// One readable line, if it cannot start.
pub async fn run(args: Serve) -> Result<Infallible, String> {
    let (own, leader) = args.places()?;
    let placement = args.placement()?;
    let health_address = args.health()?;
    let s3_listener = listen("--s3", args.s3).await?;
    let peer_listener = listen("--peer-listen", args.peer_listen).await?;
    let health_listener = listen("/healthz", health_address).await?;
    let bob_listener = match &placement {
        Some((address, _)) => Some(listen("--bob", *address).await?),
        None => None,
    };
    let cannot_use = |error| format!("cannot use --data {}: {error}", args.data.display());
    args.defects.announce();
    args.disturbances.announce();
    let defects = Arc::new(Defects::new(args.defects));
    let store = Store::open(&args.data, args.defects).map_err(cannot_use)?;
    if placement.is_some() {
        let merged = store.merge_bucket(BUCKET, BUCKET_STATE);
        merged.map_err(cannot_use)?;
    }

    let store = Arc::new(store);
    if args.defects.lose_acked {
        store.flush_late(UNFLUSHED_FOR);
    }
    let clock = Arc::new(Clock::new(own));
    clock.observe(store.newest_version());
    let hello = Hello::new(&args.name, args.cluster(leader));
    let others = (0..).zip(&args.peers).filter(|(id, _)| *id != own);
    let others = others.map(|(id, peer)| (id, peer.name.clone(), peer.address));
    let (max_body, planted) = (args.max_object_bytes as usize, args.disturbances);
    let peers = Arc::new(Peers::new(others, hello, max_body, planted));
    let members = Members {
        own,
        clock: clock.clone(),
        replica: Arc::new(Replica::new(store.clone(), clock)),
        peers: peers.clone(),
        repairs: Arc::default(),
        defects,
        timeout: Duration::from_millis(args.peer_timeout_ms),
    };
    if args.defects.split_brain {
        tokio::spawn(members.clone().forget_when_healed());
    }
    let protocol = Arc::new(Protocol::new(members.clone(), args.protocol, leader));
    let answering = Answering {
        replica: members.replica.clone(),
        protocol: protocol.clone(),
    };
    peers.start(peer_listener, Arc::new(answering));

    let api = s3::Api::new(protocol, &args);
    let serve = move |socket| api.serve(socket);
    tokio::spawn(accept(s3_listener, planted, serve));
    if let (Some(listener), Some((_, placement))) = (bob_listener, placement.clone()) {
        let api = bob::Api::new(members, placement, args.max_object_bytes);
        tokio::spawn(accept(listener, planted, move |socket| api.serve(socket)));
    }
    let health = Arc::new(Health {
        leader: args.peers[leader as usize].name.clone(),
        args,
        peers: peers.clone(),
        store,
        placement: placement.map(|(_, placement)| placement),
    });
    let undisturbed = disturbances::Flags::default();
    let serve = move |socket| Health::serve(health.clone(), socket);
    tokio::spawn(accept(health_listener, undisturbed, serve));

    peers.until_all_connected().await;
    // Whoever started the node may have closed its end; that is no reason to stop.
    let _ = writeln!(std::io::stdout(), "ready");
    std::future::pending().await
}

/// What this node does for others.
struct Answering {
    replica: Arc<Replica>,
    protocol: Arc<Protocol>,
}

#[async_trait::async_trait]
impl Handler for Answering {
    async fn handle(&self, request: Message) -> Message {
        let Message { head, body } = request;
        let (head, body) = match postcard::from_bytes(&head) {
            Ok(PeerRequest::Command(command)) => {
                let (answer, body) = self.replica.carry_out(command, body).await;
                (encode(&answer), body)
            }
            Ok(PeerRequest::Forward(op)) => {
                let rounds = Rounds::default();
                let outcome = self.protocol.coordinate(op, body, &rounds).await;
                let (outcome, body) = match outcome {
                    Ok((reply, body)) => (Ok(reply), body),
                    Err(failure) => (Err(failure), Bytes::new()),
                };
                (encode(&(outcome, rounds.count())), body)
            }
            Err(error) => (encode(&Answer::Failed(error.to_string())), Bytes::new()),
        };
        Message { head, body }
    }
}

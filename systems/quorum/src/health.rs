//! `GET /healthz`: whether the node runs and whom it reaches, for those who start it.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, header};
use serde::Serialize;

use crate::args::Serve;
use crate::peers::Peers;
use crate::placement::Vdisk;
use crate::store::Store;

pub struct Health {
    pub node: String,
    pub protocol: String,
    pub leader: Option<String>,
    pub peers: Arc<Peers>,
    pub store: Arc<Store>,
    /// Where Bob's API is served too.
    pub vdisks: Option<Vec<VdiskStatus>>,
}

#[derive(Serialize)]
pub struct VdiskStatus {
    replicas: Vec<String>,
    quorum: usize,
}

impl VdiskStatus {
    pub fn new(vdisk: &Vdisk, args: &Serve) -> Self {
        let nodes = vdisk.nodes.iter();
        let names = nodes.map(|&node| args.peers[node as usize].name.clone());
        Self {
            replicas: names.collect(),
            quorum: vdisk.quorum,
        }
    }
}

#[derive(Serialize)]
struct Status<'a> {
    node: &'a str,
    version: &'static str,
    protocol: &'a str,
    leader: Option<&'a str>,
    peers: std::collections::BTreeMap<&'a str, bool>,
    peers_connected: usize,
    peers_total: usize,
    objects: usize,
    apis: &'static [&'static str],
    vdisks: &'a [VdiskStatus],
}

impl Health {
    pub async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let known = request.method() == Method::GET && request.uri().path() == "/healthz";
        let (status, body) = match known {
            true => (StatusCode::OK, self.status()),
            false => (
                StatusCode::NOT_FOUND,
                "{\"error\":\"only GET /healthz is here\"}".into(),
            ),
        };
        let mut response = Response::new(Full::new(body.into()));
        *response.status_mut() = status;
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn status(&self) -> String {
        let peers = self.peers.status();
        let status = Status {
            node: &self.node,
            version: env!("CARGO_PKG_VERSION"),
            protocol: &self.protocol,
            leader: self.leader.as_deref(),
            peers_connected: peers.values().filter(|&&connected| connected).count(),
            peers_total: peers.len(),
            peers,
            objects: self.store.object_count(),
            apis: match self.vdisks {
                Some(_) => &["s3", "bob"],
                None => &["s3"],
            },
            vdisks: self.vdisks.as_deref().unwrap_or_default(),
        };
        serde_json::to_string(&status).expect("a status always encodes")
    }
}

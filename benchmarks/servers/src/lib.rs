//! What the null servers have in common: where they listen, the one object they have, and that they
//! live until their standard input is closed, so that they never outlive whoever started them.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::process;

use clap::Args;
use oneshot::body;
use oneshot::load::usage;
use serde_json::json;

#[derive(Debug, Args)]
pub struct Options {
    /// Where; the first line on standard output tells the port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: String,
    /// The length of the object that every read returns
    #[arg(long, value_name = "N", default_value_t = 1024)]
    object_bytes: u64,
    /// The seed of that object's bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    object_seed: u64,
}

impl Options {
    /// The bytes that every read returns.
    pub fn object(&self) -> Vec<u8> {
        body::whole(self.object_seed, self.object_bytes)
    }
}

pub fn tell_address(address: SocketAddr) {
    println!("{}", json!({"listening": address.to_string()}));
}

/// Ends the process when its standard input is closed. Before that it says how many requests it
/// has answered, where it counts them, and what CPU time it took.
pub fn end_with_input(requests: impl Fn() -> Option<u64>) -> ! {
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    if let Some(requests) = requests() {
        let (user_ns, system_ns) = usage::of_process();
        println!(
            "{}",
            json!({"requests": requests, "cpu_ns": user_ns + system_ns})
        );
    }
    process::exit(0);
}

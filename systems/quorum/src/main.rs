//! wanlat's reference store. The README says what it is for and what it does not do.

mod answers;
mod args;
mod bob;
mod choice;
mod clock;
mod defects;
mod disturbances;
mod health;
mod listener;
mod listing;
mod log;
mod memory;
mod node;
mod op;
mod peers;
mod placement;
mod protocol;
mod record;
mod repair;
mod replica;
mod round;
mod s3;
mod store;
mod suspects;
#[cfg(test)]
mod testing;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

/// The user's input is wrong, or the node cannot start with it; the same as clap's.
const WRONG_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args::Command::Serve(serve) = args::Cli::parse().command;
    // One thread for the network: with five nodes on two cores, a second one per node only adds
    // wake-ups between cores (measured: 0.1 ms a round). Disks are waited for elsewhere.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"));
    let Err(error) = runtime.and_then(|runtime| runtime.block_on(node::run(serve)));
    log::say(error);
    ExitCode::from(WRONG_INPUT)
}

//! An S3 server that costs nothing and misbehaves on demand: what `oneshot` is tested against, and
//! what the benchmarks' clients of S3 ask.
//!
//! It answers every request at once with a canned, valid response, or keeps objects in memory, and
//! checks no signature.

mod answer;
mod request;
mod serve;
mod store;

use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;

use clap::Parser;
use null_servers::{Options, end_with_input, tell_address};

use crate::answer::Answer;
use crate::serve::Server;
use crate::store::Store;

/// An S3 server that costs nothing and misbehaves on demand
#[derive(Parser)]
#[command(version, after_help = answer::HELP)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Keep what is put, in memory, instead of canned answers
    #[arg(long)]
    memory: bool,
    /// Write each request that arrives to standard output, one JSON object a line
    #[arg(long)]
    journal: bool,
    /// How to answer the first request, the second, ...; the last one given stays
    #[arg(long, value_name = "HOW")]
    answer: Vec<Answer>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let listener = TcpListener::bind(&arguments.options.listen)?;
    tell_address(listener.local_addr()?);
    let store = if arguments.memory {
        Store::memory()
    } else {
        Store::Canned(arguments.options.object().into())
    };
    let journal = arguments.journal;
    let server = Arc::new(Server::new(store, arguments.answer, journal));
    let counting = server.clone();
    std::thread::spawn(move || serve::accept(&listener, &server));
    end_with_input(|| (!journal).then(|| counting.answered()))
}

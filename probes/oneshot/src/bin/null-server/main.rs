//! An S3 server that costs nothing and misbehaves on demand: what `oneshot` is tested against, and
//! what the clients of `benchmarks/probe/` are measured against.
//!
//! It answers every request at once with a canned, valid response, or keeps objects in memory, and
//! checks no signature. It lives until its standard input is closed, so that it never outlives
//! whoever started it.

mod answer;
mod request;
mod serve;
mod store;

use std::io::{self, Read};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, ArgAction, Command, value_parser};

use crate::answer::Answer;
use crate::serve::Server;
use crate::store::Store;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("null-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let matches = command().get_matches();
    let listener = TcpListener::bind(matches.get_one::<String>("listen").expect("has a default"))?;
    println!("{{\"listening\":\"{}\"}}", listener.local_addr()?);

    let object = (
        *matches
            .get_one::<u64>("object-seed")
            .expect("has a default"),
        *matches
            .get_one::<u64>("object-bytes")
            .expect("has a default"),
    );
    let store = if matches.get_flag("memory") {
        Store::memory()
    } else {
        Store::canned(object)
    };
    let answers: Vec<Answer> = matches
        .get_many("answer")
        .map(|given| given.cloned().collect())
        .unwrap_or_default();
    let server = Arc::new(Server::new(store, answers, matches.get_flag("journal")));
    std::thread::spawn(move || serve::accept(&listener, &server));

    io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn command() -> Command {
    Command::new("null-server")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An S3 server that costs nothing and misbehaves on demand")
        .after_help(answer::HELP)
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS:PORT")
                .default_value("127.0.0.1:0")
                .help("Where; the first line on standard output tells the port"),
        )
        .arg(
            Arg::new("object-bytes")
                .long("object-bytes")
                .value_name("N")
                .default_value("1024")
                .value_parser(value_parser!(u64))
                .help("The length of the object that every GET returns"),
        )
        .arg(
            Arg::new("object-seed")
                .long("object-seed")
                .value_name("N")
                .default_value("0")
                .value_parser(value_parser!(u64))
                .help("The seed of that object's bytes"),
        )
        .arg(
            Arg::new("memory")
                .long("memory")
                .action(ArgAction::SetTrue)
                .help("Keep what is put, in memory, instead of canned answers"),
        )
        .arg(
            Arg::new("journal")
                .long("journal")
                .action(ArgAction::SetTrue)
                .help("Write each request that arrives to standard output, one JSON object a line"),
        )
        .arg(
            Arg::new("answer")
                .long("answer")
                .value_name("HOW")
                .action(ArgAction::Append)
                .value_parser(|text: &str| text.parse::<Answer>())
                .help("How to answer the first request, the second, ...; the last one given stays"),
        )
}

//! The command line of `oneshot`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use oneshot::body;
use oneshot::plan::Stopped;
use oneshot::protocols::Spoken;

/// Sends one request at a time and says where its time went
#[derive(Parser)]
#[command(name = "oneshot", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Plan(Spoken),
    /// Keeps many requests in flight: carries out a job read from standard input (a header line,
    /// then the job)
    Load {
        /// The subcommand that takes such a header
        #[arg(value_parser = protocols())]
        protocol: Spoken,
    },
    /// Writes the bytes of an object to standard output
    Body {
        /// The seed they are made from
        #[arg(long, value_name = "N")]
        seed: u64,
        /// How many
        #[arg(long, value_name = "N")]
        bytes: u64,
    },
}

/// Protocols by their names alone: their descriptions are those of the subcommands.
fn protocols() -> impl TypedValueParser<Value = Spoken> {
    let known = Spoken::value_variants().iter();
    let names = known.filter_map(|protocol| Some(protocol.to_possible_value()?.help(None)));
    PossibleValuesParser::new(names).try_map(|name| Spoken::from_str(&name, false))
}

fn main() -> ExitCode {
    let (input, output) = (io::stdin().lock(), io::stdout());
    match Arguments::parse().command {
        Command::Plan(protocol) => end(protocol.run(input, output.lock())),
        Command::Load { protocol } => end(protocol.load(input, output)),
        Command::Body { seed, bytes } => write_body(seed, bytes),
    }
}

fn end(result: Result<(), Stopped>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stopped::Plan(error)) => fail(2, &error.to_string()),
        Err(Stopped::Output(error)) => fail(1, &format!("cannot write a record: {error}")),
    }
}

fn write_body(seed: u64, bytes: u64) -> ExitCode {
    let mut output = io::stdout().lock();
    let written = body::for_each_block(seed, bytes, |block| output.write_all(block))
        .and_then(|()| output.flush());
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("cannot write the body: {error}")),
    }
}

fn fail(code: u8, what: &str) -> ExitCode {
    eprintln!("oneshot: {what}");
    ExitCode::from(code)
}

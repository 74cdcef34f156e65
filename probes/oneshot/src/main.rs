//! The command line of `oneshot`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use oneshot::plan::Stopped;
use oneshot::{body, grpc, load, s3};

fn main() -> ExitCode {
    let matches = command().get_matches(); // leaves with 2 and a usage line when it is wrong
    match matches.subcommand() {
        Some(("s3", _)) => end(s3::run(io::stdin().lock(), io::stdout().lock())),
        Some(("grpc", _)) => end(grpc::run(io::stdin().lock(), io::stdout().lock())),
        Some(("load", _)) => end(load::run(io::stdin().lock(), io::stdout())),
        Some(("body", arguments)) => write_body(arguments),
        _ => unreachable!("clap asks for a subcommand"),
    }
}

fn command() -> Command {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .required(true)
            .help(help)
            .value_parser(value_parser!(u64))
    };
    Command::new("oneshot")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Sends one request at a time and says where its time went")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("s3").about(
            "Carries out a plan of S3 requests read from standard input (a header line, then one \
             request a line) and writes one record a line",
        ))
        .subcommand(
            Command::new("grpc")
                .about("The same with requests to Bob, or to any unary method of a gRPC service"),
        )
        .subcommand(Command::new("load").about(
            "Keeps many requests in flight: carries out a job read from standard input (a header \
             line, then the job)",
        ))
        .subcommand(
            Command::new("body")
                .about("Writes the bytes of an object to standard output")
                .arg(number("seed", "The seed they are made from"))
                .arg(number("bytes", "How many")),
        )
}

fn end(result: Result<(), Stopped>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stopped::Plan(error)) => fail(2, &error.to_string()),
        Err(Stopped::Output(error)) => fail(1, &format!("cannot write a record: {error}")),
    }
}

fn write_body(arguments: &ArgMatches) -> ExitCode {
    let number = |name: &str| *arguments.get_one::<u64>(name).expect("clap requires it");
    let mut output = io::stdout().lock();
    let written = body::for_each_block(number("seed"), number("bytes"), |b| output.write_all(b))
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

//! The program `wire`: options, and the loop.

#![deny(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Parser;
use wire::console::Console;
use wire::event_loop::EventLoop;
use wire::sys;

/// Moves Ethernet frames between pairs of interfaces, impaired as asked.
///
/// Requests come on standard input and are answered on standard output, one JSON object a line.
/// Ends when standard input is closed. Needs CAP_NET_RAW in the user namespace that owns the
/// network namespace.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Hold at most N MiB of frames; what exceeds it is dropped and counted as memory_drops
    // Half a gibibyte holds 5 Gbit/s for 0.8 s.
    #[arg(long, value_name = "N", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    memory_mib: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(options.memory_mib << 20) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wire: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(memory_bytes: u64) -> io::Result<()> {
    sys::prepare_process();
    let console = Console::new(
        io::stdin().as_fd().try_clone_to_owned()?,
        io::stdout().as_fd().try_clone_to_owned()?,
    );
    EventLoop::new(console, memory_bytes)?.run()
}

//! The program `wire`: options, and the loop.

#![deny(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use wire::capture;
use wire::console::Console;
use wire::event_loop::EventLoop;
use wire::sys;

/// Half a gibibyte holds 5 Gbit/s for 0.8 s.
const DEFAULT_MEMORY_MIB: u64 = 512;

const USAGE: &str = "\
wire: moves Ethernet frames between pairs of interfaces, impaired as asked.

Usage: wire [--memory-mib N]
       wire watch
       wire rows FILE

  --memory-mib N   hold at most N MiB of frames (default 512); what exceeds it is
                   dropped and counted as memory_drops
  watch            only record packets that the kernel moves (src/capture/watch.rs)
  rows FILE        print a record of packets as rows of fixed length
  --version        print the version
  --help           print this

Requests come on standard input and are answered on standard output, one JSON
object a line. Ends when standard input is closed. Needs CAP_NET_RAW in the user
namespace that owns the network namespace.
";

enum Command {
    Run { memory_bytes: u64 },
    Watch,
    Rows { file: String },
    Print(&'static str),
}

fn main() -> ExitCode {
    let result = match parse_options(std::env::args().skip(1)) {
        Ok(Command::Run { memory_bytes }) => run(memory_bytes),
        Ok(Command::Watch) => capture::watch::run(),
        Ok(Command::Rows { file }) => capture::rows::print(&file),
        Ok(Command::Print(text)) => {
            print!("{text}");
            Ok(())
        }
        Err(error) => {
            eprintln!("wire: {error}; see wire --help");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wire: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse_options(mut options: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut memory_mib = DEFAULT_MEMORY_MIB;
    while let Some(option) = options.next() {
        match option.as_str() {
            "--help" | "-h" => return Ok(Command::Print(USAGE)),
            "--version" => return Ok(Command::Print(concat!(env!("CARGO_PKG_VERSION"), "\n"))),
            "watch" => return Ok(Command::Watch),
            "rows" => {
                let file = options.next().ok_or("rows takes a file")?;
                return Ok(Command::Rows { file });
            }
            "--memory-mib" => {
                let value = options.next().unwrap_or_default();
                memory_mib = match value.parse() {
                    Ok(mib @ 1..=1_048_576) => mib,
                    _ => return Err(format!("--memory-mib takes 1 to 1048576, not {value:?}")),
                };
            }
            _ => return Err(format!("unknown option {option:?}")),
        }
    }
    Ok(Command::Run {
        memory_bytes: memory_mib << 20,
    })
}

fn run(memory_bytes: u64) -> io::Result<()> {
    sys::prepare_process();
    let console = Console::new(
        io::stdin().as_fd().try_clone_to_owned()?,
        io::stdout().as_fd().try_clone_to_owned()?,
    );
    EventLoop::new(console, memory_bytes)?.run()
}

//! wanlat's reference store. The README says what it is for and what it does not do.

mod args;
mod bob;
mod clock;
mod defects;
mod disturbances;
mod health;
mod listener;
mod listing;
mod log;
mod node;
mod op;
mod peers;
mod placement;
mod protocol;
mod repair;
mod replica;
mod s3;
mod store;
#[cfg(test)]
mod testing;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

/// The user's input is wrong, or the node cannot start with it.
const WRONG_INPUT: u8 = 2;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            print!("{error}");
            return ExitCode::SUCCESS;
        }
        Err(error) => return refuse(&one_line(&error.to_string())),
    };
    let args::Command::Serve(serve) = cli.command;
    // One thread for the network: with five nodes on two cores, a second one per node only adds
    // wake-ups between cores (measured: 0.1 ms a round). Disks are waited for elsewhere.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let started = match runtime {
        Ok(runtime) => runtime.block_on(node::run(serve)),
        Err(error) => Err(format!("cannot start: {error}")),
    };
    match started {
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &str) -> ExitCode {
    log::say(error);
    ExitCode::from(WRONG_INPUT)
}

/// clap's message without its usage, on one line.
fn one_line(message: &str) -> String {
    let (reason, _usage) = message.split_once("\n\nUsage").unwrap_or((message, ""));
    let (reason, _hint) = reason.split_once("\n\nFor more").unwrap_or((reason, ""));
    let words: Vec<_> = reason.split_whitespace().collect();
    let reason = words.join(" ");
    let reason = reason.strip_prefix("error: ").unwrap_or(&reason);
    format!("{reason} (see quorum serve --help)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_command_line_is_one_line() {
        let line = ["quorum", "serve", "--peer", "nonsense"];
        let error = args::Cli::try_parse_from(line).err().unwrap().to_string();
        assert!(error.lines().count() > 1);
        let line = one_line(&error);
        assert!(
            line.starts_with("invalid value 'nonsense' for '--peer"),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
    }
}

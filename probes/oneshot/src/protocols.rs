//! The protocols that there are: a module each, and its line here.

use std::io::{BufRead, Write};

use clap::{Subcommand, ValueEnum};

use crate::exec::Exec;
use crate::grpc::Grpc;
use crate::http::template::Http;
use crate::plan::Stopped;
use crate::s3::S3;
use crate::{load, protocol};

macro_rules! protocols {
    ($($(#[$about:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, Debug, Subcommand, ValueEnum)]
        pub enum Spoken {
            $($(#[$about])* $name,)*
        }

        impl Spoken {
            /// Carries out a plan: [`protocol::run`].
            ///
            /// # Errors
            /// As there.
            pub fn run(self, input: impl BufRead, output: impl Write) -> Result<(), Stopped> {
                match self {
                    $(Spoken::$name => protocol::run::<$name>(input, output),)*
                }
            }

            /// Carries out the job of a load: [`load::run`].
            ///
            /// # Errors
            /// As there.
            pub fn load(self, input: impl BufRead, output: impl Write) -> Result<(), Stopped> {
                match self {
                    $(Spoken::$name => load::run::<$name>(input, output),)*
                }
            }
        }
    };
}

protocols! {
    /// Carries out a plan of S3 requests read from standard input (a header line, then one request
    /// a line) and writes one record a line
    S3,
    /// The same with requests to Bob, or to any unary method of a gRPC service
    Grpc,
    /// The same with requests of any HTTP/1.1 service, as templates say
    Http,
    /// The same with requests that a program makes, which is told one a line
    Exec,
}

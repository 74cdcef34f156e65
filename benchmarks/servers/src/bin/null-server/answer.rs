//! The ways to answer a request: one well, the others as servers and networks do on bad days.

use std::str::FromStr;
use std::time::Duration;

pub const HELP: &str = "\
How to answer (HOW):
  ok                    as a server should
  wait:MS               the same, MS milliseconds later
  wait-body:MS          head and half the body at once, the other half MS milliseconds later
  split                 head and body in two writes with Nagle's algorithm on
  chunked               with Transfer-Encoding: chunked and a trailer
  until-close           without a length: the body ends with the connection
  continue              100 Continue, which nobody asked for, then ok 20 ms later
  connection-close      with Connection: close, then close
  close-after           ok, then close without having said so
  stray                 ok, and bytes that nobody asked for behind it
  wrong-body            one bit of the body turned over
  status:CODE[:ERROR]   an S3 error document
  redirect:CODE:URL     a Location
  early:CODE:ERROR      an error before the request's body is read, then close
  early-ok              200 before the request's body is read, then close
  truncate              half the body, then close
  truncate-chunked      a chunk and no end, then close
  garbage               not HTTP
  close                 close instead of answering
  reset                 reset instead of answering
  reset-body            half the body, then reset
  never                 no answer, ever
  no-read               never read the request's body, never answer";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Ok,
    Wait(Duration),
    WaitBody(Duration),
    Split,
    Chunked,
    UntilClose,
    Continue,
    ConnectionClose,
    CloseAfter,
    Stray,
    WrongBody,
    Status(u16, Option<String>),
    Redirect(u16, String),
    Early(u16, Option<String>),
    Truncate,
    TruncateChunked,
    Garbage,
    Close,
    Reset,
    ResetBody,
    Never,
    NoRead,
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let wrong = || format!("{text:?} is no way to answer; --help lists them");
        let needed = || rest.ok_or_else(wrong);
        let duration = || {
            let ms = needed()?.parse().map_err(|_| wrong())?;
            Ok::<_, String>(Duration::from_millis(ms))
        };
        let status = || {
            let (code, detail) = match needed()?.split_once(':') {
                Some((code, detail)) => (code, Some(detail.to_owned())),
                None => (needed()?, None),
            };
            Ok::<_, String>((code.parse().map_err(|_| wrong())?, detail))
        };
        Ok(match name {
            "ok" => Answer::Ok,
            "wait" => Answer::Wait(duration()?),
            "wait-body" => Answer::WaitBody(duration()?),
            "split" => Answer::Split,
            "chunked" => Answer::Chunked,
            "until-close" => Answer::UntilClose,
            "continue" => Answer::Continue,
            "connection-close" => Answer::ConnectionClose,
            "close-after" => Answer::CloseAfter,
            "stray" => Answer::Stray,
            "wrong-body" => Answer::WrongBody,
            "status" => {
                let (code, error) = status()?;
                Answer::Status(code, error)
            }
            "redirect" => {
                let (code, location) = status()?;
                Answer::Redirect(code, location.ok_or_else(wrong)?)
            }
            "early" => {
                let (code, error) = status()?;
                Answer::Early(code, Some(error.ok_or_else(wrong)?))
            }
            "early-ok" => Answer::Early(200, None),
            "truncate" => Answer::Truncate,
            "truncate-chunked" => Answer::TruncateChunked,
            "garbage" => Answer::Garbage,
            "close" => Answer::Close,
            "reset" => Answer::Reset,
            "reset-body" => Answer::ResetBody,
            "never" => Answer::Never,
            "no-read" => Answer::NoRead,
            _ => return Err(wrong()),
        })
    }
}

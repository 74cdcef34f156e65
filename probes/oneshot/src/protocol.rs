//! What every protocol does, and what is done with any of them: one request at a time, on a
//! connection that is kept or made for it.
//!
//! A protocol is a module with a [`Protocol`]: its header line, how a request is built, sent and
//! judged. Plans ([`run`]) and the workers of a load ([`crate::load`]) send through the same
//! [`Client`].

use std::io::{BufRead, Write};

use crate::clock;
use crate::outcome::Verdict;
use crate::plan::{self, ConnectionMode, HeaderLine, Plan, PlanError, Request, Stopped, Terms};
use crate::record::Record;
use crate::tcp_info::TcpInfo;
use crate::timing::Timing;

/// A request that was built.
#[derive(Debug)]
pub enum Built<R> {
    Ready(R),
    /// It cannot be sent, and that is its outcome.
    Unsent(Verdict),
}

/// What a request came to.
#[derive(Debug)]
pub struct Judged {
    pub verdict: Verdict,
    /// May the connection carry another request?
    pub is_reusable: bool,
}

/// One way to speak to a store.
pub trait Protocol: Sized {
    /// The plan's first line.
    type Header: HeaderLine;
    /// A connection, and what the protocol keeps on it.
    type Link;
    /// A request, ready to be sent.
    type Ready;
    /// What came of it on the wire.
    type Done;

    /// `lean`: for a load, whose records hold neither hashes nor what the kernel knows.
    ///
    /// # Errors
    /// The header is of no use.
    fn new(header: &Self::Header, lean: bool) -> Result<Self, PlanError>;

    /// Makes the very bytes that will be sent, and room for the answer, before any clock runs.
    ///
    /// # Errors
    /// The request makes no sense: what is wrong with it, and what is allowed.
    fn build(&mut self, request: &Request) -> Result<Built<Self::Ready>, String>;

    /// Begins what takes time before the first request, which need not be waited for.
    fn get_ready(&mut self) {}

    /// A connection that is not made yet: no packet is sent. (Or a program, which is started, and
    /// is ready within `allowed_ns`, if that is given.)
    ///
    /// # Errors
    /// There is none, and that is the outcome of the request that it was for.
    fn link(&mut self, allowed_ns: Option<u64>) -> Result<Self::Link, Verdict>;

    /// A connection that was put aside, and can carry a request by now.
    fn regained(&mut self) -> Option<Self::Link> {
        None
    }

    /// Takes a connection that can carry no other request yet; most never can, and end here.
    fn put_aside(&mut self, _: Self::Link) {}

    /// Can a kept connection carry a request? Asked before one is sent, never after.
    fn is_alive(link: &mut Self::Link) -> bool;

    /// All zero where that is nobody's to know.
    fn tcp_info(link: &Self::Link) -> TcpInfo;

    /// The timed part: sends the request and reads the answer. `is_new`: the connection is yet to
    /// be made. Nothing is ever sent twice.
    fn exchange(
        &mut self,
        link: &mut Self::Link,
        is_new: bool,
        ready: &mut Self::Ready,
        allowed_ns: u64,
    ) -> (Timing, Self::Done);

    /// Says what came of it, once the clock has stopped; `record` has the times already.
    fn judge(
        &self,
        request: &Request,
        ready: &Self::Ready,
        done: &Self::Done,
        record: &mut Record,
    ) -> Judged;
}

/// Carries out the plan read from `input`; a record for each request goes to `output`.
///
/// # Errors
/// A line is wrong, or nobody takes the records any more.
pub fn run<P: Protocol>(input: impl BufRead, mut output: impl Write) -> Result<(), Stopped> {
    let mut plan = Plan::new(input);
    let header = plan.header::<P::Header>().map_err(Stopped::Plan)?;
    let mut client = Client::<P>::new(&header, false).map_err(Stopped::Plan)?;
    client.get_ready();
    while let Some(request) = plan.next_line::<Request>().map_err(Stopped::Plan)? {
        let built = client
            .build(&request)
            .map_err(|what| Stopped::Plan(plan.error(&what)))?;
        client
            .perform(&request, built)
            .write(&mut output)
            .map_err(Stopped::Output)?;
    }
    Ok(())
}

/// Sends requests to one server, one at a time.
pub struct Client<P: Protocol> {
    protocol: P,
    terms: Terms,
    lean: bool,
    kept: Option<P::Link>,
}

impl<P: Protocol> Client<P> {
    /// # Errors
    /// The header is of no use.
    pub fn new(header: &P::Header, lean: bool) -> Result<Self, PlanError> {
        Ok(Client {
            protocol: P::new(header, lean)?,
            terms: header.terms(),
            lean,
            kept: None,
        })
    }

    /// Begins what the first request on a connection that is kept would have to wait for.
    fn get_ready(&mut self) {
        if self.terms.connection == ConnectionMode::KeepAlive {
            self.protocol.get_ready();
        }
    }

    /// Makes a request ready.
    ///
    /// # Errors
    /// As [`Protocol::build`].
    pub fn build(&mut self, request: &Request) -> Result<Built<P::Ready>, String> {
        self.protocol.build(request)
    }

    /// Sends what was built last.
    pub fn perform(&mut self, request: &Request, built: Built<P::Ready>) -> Record {
        let mut ready = match built {
            Built::Ready(ready) => ready,
            Built::Unsent(verdict) => return unsent(request, verdict),
        };
        let kept = self
            .kept
            .take()
            .and_then(|mut link| P::is_alive(&mut link).then_some(link))
            .or_else(|| self.protocol.regained());
        let is_new = kept.is_none();
        // A request's own deadline counts from here, if a connection is to be made for it.
        let came_ns = clock::now_ns();
        let allowed_ns = plan::allowed_ns(request.deadline_ms, self.terms.deadline_ms);
        let own_ns = request.deadline_ms.map(|_| allowed_ns);
        let mut link = match kept.map_or_else(|| self.protocol.link(own_ns), Ok) {
            Ok(link) => link,
            Err(verdict) => {
                let mut record = unsent(request, verdict);
                record.new_connection = true;
                return record;
            }
        };
        // What happened on a kept connection between two requests belongs to neither.
        let before = (!self.lean && !is_new).then(|| P::tcp_info(&link));
        let left_ns = own_ns.filter(|_| is_new).map_or(allowed_ns, |own_ns| {
            own_ns.saturating_sub(clock::now_ns() - came_ns)
        });
        let (timing, done) = self
            .protocol
            .exchange(&mut link, is_new, &mut ready, left_ns);
        let after = (!self.lean).then(|| P::tcp_info(&link));

        let mut record = Record::new(request, timing);
        let judged = self.protocol.judge(request, &ready, &done, &mut record);
        record.new_connection = is_new;
        if let Some(after) = after {
            record.add_tcp_info(before, after);
        }
        match (self.terms.connection, judged.is_reusable) {
            (ConnectionMode::KeepAlive, true) => self.kept = Some(link),
            (ConnectionMode::KeepAlive, false) => self.protocol.put_aside(link),
            _ => {}
        }
        record.judged(judged.verdict)
    }
}

/// Nothing was sent, and no clock ran.
fn unsent(request: &Request, verdict: Verdict) -> Record {
    let timing = Timing {
        start_ns: clock::now_ns(),
        ..Timing::default()
    };
    Record::new(request, timing).judged(verdict)
}

//! One HTTP/1.1 request and its response, timed.

pub mod exchange;
pub mod response;

//! The client against a scripted model over real HTTP, in both wire formats.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod cancelled;
mod failures;
mod limits;
mod replies;
mod requests;
mod support;

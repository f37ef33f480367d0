//! HTTP/1.1 on a connection.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::ConnectionError;

/// The limits of the head of a request.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// The time for which a head may arrive, and for which a connection may be idle between requests.
    pub timeout: Duration,
    /// Its maximum size, in bytes.
    pub size: usize,
}

/// Answers the requests of a connection until it ends, or until a response upgrades it to another protocol.
///
/// # Errors
/// The reason why the connection has ended early.
pub async fn serve_requests<A, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    heads: HeadLimits,
    answer: impl Fn(Request<Incoming>) -> A,
) -> Result<(), ConnectionError>
where
    A: Future<Output = Response<B>>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let service = service_fn(|request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(heads.timeout)
        .max_buf_size(heads.size)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    Ok(served?)
}

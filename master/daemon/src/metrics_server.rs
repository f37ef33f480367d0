//! Serves metrics for Prometheus: `GET /metrics` on `metrics_port`, if it is set.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_runtime::executors::Executor;
use brine_runtime::supervisor::Background;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The maximum number of connections.
const MAX_CONNECTIONS: usize = 16;
/// The timeout of a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until `shutdown`.
pub(crate) async fn serve(listener: TcpListener, bus: Bus, disk: Executor, shutdown: CancellationToken) {
    let (slots, connections) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), Background::default());
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                brine_zmtp::metrics::ACCEPT_FAILED.add(1);
                tracing::warn!(%error, "accepting a connection to the metrics port failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (bus, disk, shutdown) = (bus.clone(), disk.clone(), shutdown.clone());
        connections.spawn("metrics connection", async move {
            let _slot = slot;
            let service = service_fn(move |request| {
                let (bus, disk) = (bus.clone(), disk.clone());
                async move { Ok::<_, Infallible>(answer(&request, bus, &disk).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(16 << 10)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                result = connection => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "connection to the metrics port failed");
                    }
                }
                () = shutdown.cancelled() => {}
            }
        });
    }
}

async fn answer(request: &Request<Incoming>, bus: Bus, disk: &Executor) -> Response<String> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            if let Err(error) = disk.run(move |thread| bus.measure(thread)).await {
                tracing::warn!(%error, "updating the gauges of the event bus failed");
            }
            (StatusCode::OK, brine_metrics::prometheus())
        }
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "GET is the method for metrics\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

//! Web sockets: `/ws` of rest_cherrypy, `/all_events` and `/formatted_events` of rest_tornado.
//!
//! As with Salt's servers, nothing is sent before the client has sent [`READY`].

use std::task::Poll;
use std::time::Duration;

use axum::extract::FromRequestParts as _;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use bytes::Bytes;

use super::formatted::Formatted;
use crate::answer::Answer;
use crate::auth::{Authenticated, is_hex};
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::stream::{EventQuery, Next, Stream};

/// The client's message that starts the events, and the reply to it.
const READY: &str = "websocket client ready";
const RECEIVED: &str = "server received message";
/// The timeout of that message.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of a message of a client, in bytes.
const MAX_MESSAGE: usize = 64 << 10;
/// The size of the read buffer, in bytes. It is small, because clients send little and each web socket has one.
const READ_BUFFER: usize = 1 << 10;
/// The maximum number of bytes that are buffered for a client.
const MAX_BUFFER: usize = 4 << 20;

/// The format of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `data: JSON` and an empty line, with a reply to [`READY`].
    Lines,
    /// JSON.
    Plain,
    /// The state of jobs and minions, as JSON.
    State,
}

/// Handles `GET /ws`.
pub(crate) async fn by_login(context: RequestContext) -> Answer {
    let sender = context.sender()?.clone();
    upgrade(context, sender, Form::Lines).await
}

/// Handles `GET /ws/TOKEN`.
pub(crate) async fn by_path(context: RequestContext) -> Answer {
    let sender = by_token(&context).await?;
    upgrade(context, sender, Form::Lines).await
}

/// Handles `GET /all_events/TOKEN`.
pub(crate) async fn all_events(context: RequestContext) -> Answer {
    let sender = by_token(&context).await?;
    upgrade(context, sender, Form::Plain).await
}

/// Handles `GET /formatted_events/TOKEN`.
pub(crate) async fn formatted_events(context: RequestContext) -> Answer {
    let sender = by_token(&context).await?;
    upgrade(context, sender, Form::State).await
}

async fn by_token(context: &RequestContext) -> Result<Authenticated, ApiError> {
    if !is_hex(context.param()) {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist"));
    }
    let sender = context.api.auth.by_secret(context.param(), context.client.address).await?;
    context.client.slot.authenticate();
    Ok(sender)
}

async fn upgrade(mut context: RequestContext, sender: Authenticated, form: Form) -> Answer {
    let query = EventQuery::read(&context)?;
    let form = if query.is_formatted { Form::State } else { form };
    let upgrade = WebSocketUpgrade::from_request_parts(&mut context.parts, &()).await;
    let upgrade = upgrade.map_err(|error| ApiError::bad_request(format!("The web socket is refused: {error}")))?;
    let stream = Stream::new(&context.api, &sender, query);
    let (address, client) = (context.client.address, context.client);
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE).max_write_buffer_size(MAX_BUFFER);
    let upgrade = upgrade.read_buffer_size(READ_BUFFER);
    // The library's own task ends with the upgrade, so the stream runs in a task of the API.
    let tasks = context.api.connections.clone();
    Ok(upgrade.on_upgrade(async move |socket| {
        tasks.spawn("api web socket", async move {
            if let Err(error) = serve(socket, stream, form).await {
                tracing::debug!(%address, %error, "a web socket ended");
            }
            drop(client);
        });
    }))
}

/// Waits for the message [`READY`]. Returns whether the client is still connected.
async fn is_ready(socket: &mut WebSocket) -> Result<bool, axum::Error> {
    while let Some(message) = socket.recv().await {
        match message? {
            Message::Text(text) if text.trim() == READY => return Ok(true),
            Message::Close(_) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

async fn serve(mut socket: WebSocket, mut stream: Stream, form: Form) -> Result<(), axum::Error> {
    let ready = tokio::time::timeout(READY_TIMEOUT, is_ready(&mut socket)).await;
    if !ready.unwrap_or(Ok(false))? {
        return socket.send(Message::Close(None)).await;
    }
    if form == Form::Lines {
        socket.send(Message::text(RECEIVED)).await?;
    }
    let mut state = Formatted::default();
    let reservation = stream.state();
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            message = socket.recv() => match message {
                // Pings are answered by the library.
                Some(Ok(message)) if !matches!(message, Message::Close(_)) => continue,
                _ => return Ok(()),
            },
        };
        let item = match next {
            Next::Silence => {
                socket.send(Message::Ping(Bytes::new())).await?;
                continue;
            }
            Next::End => return socket.send(Message::Close(None)).await,
            Next::Event(item) => item,
        };
        let message = match form {
            Form::Lines => text(item.data_line()),
            Form::Plain => text(item.json()),
            Form::State => {
                let Some(changed) = state.update(&item.event) else { continue };
                if !reservation.try_resize(state.memory()) {
                    tracing::warn!("a web socket is closed: the states of its user's web sockets are too large");
                    return socket.send(Message::Close(None)).await;
                }
                Message::text(changed)
            }
        };
        let seq = item.seq;
        drop(item);
        send(&mut socket, message, seq, &mut stream).await?;
    }
}

/// Sends the message of an event. While the client does not read, later events are released.
async fn send(socket: &mut WebSocket, message: Message, seq: u64, stream: &mut Stream) -> Result<(), axum::Error> {
    let size = match &message {
        Message::Text(text) => text.len(),
        _ => 0,
    };
    let mut sending = std::pin::pin!(socket.send(message));
    if let Poll::Ready(sent) = futures::poll!(&mut sending) {
        return sent;
    }
    stream.rewind(seq);
    if let Some(held) = stream.hold(size) {
        tokio::select! {
            sent = sending => return sent,
            () = held => {}
        }
    }
    Err(axum::Error::new(std::io::Error::from(std::io::ErrorKind::QuotaExceeded)))
}

fn text(bytes: Bytes) -> Message {
    // Serialized events are UTF-8.
    Message::Text(Utf8Bytes::try_from(bytes).unwrap_or_default())
}

//! The loop of the server: one message after the other. Findings of open documents are sent, the changed one first, while
//! no message waits.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use brine_authoring_model::Catalogue;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{Notification as _, PublishDiagnostics, ShowMessage};
use lsp_types::{MessageType, PublishDiagnosticsParams, ShowMessageParams};
use serde_json::Value;

use crate::wire::{self, Incoming};
use crate::workspace::Workspace;
use crate::{findings, handshake, requests};

/// The time for the last answers when the client has gone.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client asked for it: `shutdown`, then `exit`.
    Shutdown,
    /// The client asked for it without `shutdown`.
    Exit,
    /// The client closed its side.
    Closed,
}

/// What the loop does next.
enum Next {
    Go,
    End(End),
}

struct Server {
    workspace: Workspace,
    sender: SyncSender<Message>,
    /// The documents whose findings are to be sent.
    changed: VecDeque<String>,
    /// Whether the client watches the files.
    is_watched: bool,
    is_shut_down: bool,
}

/// Serves a client until it goes.
pub(crate) fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    catalogue: Catalogue,
    version: &str,
) -> io::Result<End> {
    let incoming = wire::reader(input)?;
    let (sender, writer) = wire::writer(output)?;
    let end = match initialize(&incoming, &sender, catalogue, version)? {
        Ok(mut server) => server.run(&incoming)?,
        Err(end) => end,
    };
    drop(sender);
    // A client that has gone may leave its pipe open without reading.
    let started = Instant::now();
    while !writer.is_finished() && started.elapsed() < LAST_ANSWERS {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(end)
}

/// Waits for `initialize`, answers it, and reads the client's folders.
fn initialize(
    incoming: &Receiver<Incoming>,
    sender: &SyncSender<Message>,
    catalogue: Catalogue,
    version: &str,
) -> io::Result<Result<Server, End>> {
    loop {
        let message = match incoming.recv() {
            Ok(Incoming::Message(message)) => message,
            Ok(Incoming::Invalid) => continue,
            Ok(Incoming::Failed(error)) => return Err(error),
            Err(_) => return Ok(Err(End::Closed)),
        };
        match message {
            Message::Request(request) if request.method == "initialize" => {
                let client = match serde_json::from_value(request.params) {
                    Ok(params) => handshake::Client::of(params),
                    Err(error) => {
                        let answer = Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string());
                        _ = sender.send(answer.into());
                        continue;
                    }
                };
                let answer = Response::new_ok(request.id, handshake::answer(&client, version));
                if sender.send(answer.into()).is_err() {
                    return Ok(Err(End::Closed));
                }
                let mut server = Server {
                    workspace: Workspace::new(catalogue, client.units),
                    sender: sender.clone(),
                    changed: VecDeque::new(),
                    is_watched: client.can_watch,
                    is_shut_down: false,
                };
                for folder in &client.folders {
                    let told = server.workspace.add_root(folder);
                    server.tell(told);
                }
                return Ok(Ok(server));
            }
            Message::Request(request) => {
                let error = "the session has not begun: expected the request 'initialize'".to_owned();
                let answer = Response::new_err(request.id, ErrorCode::ServerNotInitialized as i32, error);
                _ = sender.send(answer.into());
            }
            Message::Notification(notification) if notification.method == "exit" => return Ok(Err(End::Exit)),
            Message::Notification(_) | Message::Response(_) => {}
        }
    }
}

impl Server {
    fn run(&mut self, incoming: &Receiver<Incoming>) -> io::Result<End> {
        let mut waiting: VecDeque<Message> = VecDeque::new();
        loop {
            loop {
                match incoming.try_recv() {
                    Ok(Incoming::Message(message)) => waiting.push_back(message),
                    Ok(Incoming::Invalid) => {}
                    Ok(Incoming::Failed(error)) if waiting.is_empty() => return Err(error),
                    Ok(Incoming::Failed(_)) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            let message = match waiting.pop_front() {
                Some(message) => message,
                None => match self.changed.pop_front() {
                    Some(uri) => {
                        self.send_findings(&uri);
                        continue;
                    }
                    None => match incoming.recv() {
                        Ok(Incoming::Message(message)) => message,
                        Ok(Incoming::Invalid) => continue,
                        Ok(Incoming::Failed(error)) => return Err(error),
                        Err(_) => return Ok(End::Closed),
                    },
                },
            };
            let is_cancelled = matches!(&message, Message::Request(request) if is_cancelled(&waiting, &request.id));
            match self.message(message, is_cancelled) {
                Next::Go => {}
                Next::End(end) => return Ok(end),
            }
        }
    }

    fn message(&mut self, message: Message, is_cancelled: bool) -> Next {
        match message {
            Message::Request(request) => {
                let answer = if is_cancelled {
                    Response::new_err(request.id, ErrorCode::RequestCanceled as i32, "cancelled".to_owned())
                } else {
                    self.answer(request)
                };
                if self.sender.send(answer.into()).is_err() {
                    return Next::End(End::Closed);
                }
            }
            Message::Notification(notification) if notification.method == "exit" => {
                return Next::End(if self.is_shut_down { End::Shutdown } else { End::Exit });
            }
            Message::Notification(notification) => self.notification(notification),
            Message::Response(_) => {}
        }
        Next::Go
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        if self.is_shut_down {
            let error = "the session has ended: expected the notification 'exit'".to_owned();
            return Response::new_err(id, ErrorCode::InvalidRequest as i32, error);
        }
        if method == "shutdown" {
            self.is_shut_down = true;
            return Response::new_ok(id, Value::Null);
        }
        // A defect that one document shows must not end the work on all others.
        let answered = catch_unwind(AssertUnwindSafe(|| requests::answer(&self.workspace, &method, params)));
        let failed = || Err((ErrorCode::InternalError, format!("answering '{method}' failed: a defect of the server")));
        match answered.unwrap_or_else(|_| failed()) {
            Ok(result) => Response::new_ok(id, result),
            Err((code, message)) => Response::new_err(id, code as i32, message),
        }
    }

    fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        let workspace = &mut self.workspace;
        let is_watched = self.is_watched;
        let changed = catch_unwind(AssertUnwindSafe(|| requests::notified(workspace, &method, params, is_watched)));
        match changed {
            Ok(requests::Change { closed, changed, told }) => {
                self.tell(told);
                if let Some(uri) = closed {
                    self.send(&uri, None, Vec::new());
                }
                if let Some(first) = changed {
                    let open = self.workspace.open_documents();
                    let mut order: VecDeque<String> = open.into_iter().map(|(uri, _)| uri).collect();
                    order.make_contiguous().sort_by_key(|uri| *uri != first);
                    self.changed = order;
                }
            }
            Err(_) => self.tell(Some(format!("reading '{method}' failed: a defect of the server"))),
        }
        if method == "initialized" && self.is_watched {
            _ = self.sender.send(handshake::watch().into());
        }
    }

    fn send_findings(&self, uri: &str) {
        let Some((_, version)) = self.workspace.open_documents().into_iter().find(|(open, _)| open == uri) else {
            return;
        };
        let diagnostics = catch_unwind(AssertUnwindSafe(|| {
            self.workspace.here(uri).map(|here| findings::diagnostics(&here)).unwrap_or_default()
        }));
        self.send(uri, Some(version), diagnostics.unwrap_or_default());
    }

    fn send(&self, uri: &str, version: Option<i32>, diagnostics: Vec<lsp_types::Diagnostic>) {
        let Ok(uri) = uri.parse() else { return };
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        _ = self.sender.send(Notification::new(PublishDiagnostics::METHOD.to_owned(), params).into());
    }

    /// Tells the person something.
    fn tell(&self, told: Option<String>) {
        if let Some(message) = told {
            let params = ShowMessageParams { typ: MessageType::WARNING, message };
            _ = self.sender.send(Notification::new(ShowMessage::METHOD.to_owned(), params).into());
        }
    }
}

/// Whether the client no longer wants the answer to a request.
fn is_cancelled(waiting: &VecDeque<Message>, id: &RequestId) -> bool {
    waiting.iter().any(|message| match message {
        Message::Notification(notification) if notification.method == "$/cancelRequest" => notification
            .params
            .get("id")
            .and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok())
            .is_some_and(|cancelled| cancelled == *id),
        _ => false,
    })
}

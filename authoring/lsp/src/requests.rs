//! Which function answers which request, and what notifications change.

use lsp_server::ErrorCode;
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidChangeWorkspaceFolders, DidCloseTextDocument, DidOpenTextDocument,
    DidSaveTextDocument, Notification,
};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentHighlightRequest, DocumentSymbolRequest, FoldingRangeRequest, Formatting,
    GotoDefinition, HoverRequest, PrepareRenameRequest, References, Rename, Request, ResolveCompletionItem,
    SemanticTokensFullRequest, WorkspaceSymbolRequest,
};
use lsp_types::{FileChangeType, TextDocumentPositionParams, WorkspaceSymbolResponse};
use serde_json::Value;

use crate::workspace::{Here, Workspace};
use crate::{actions, completion, folding, hover, layout, navigate, outline, rename, tokens, uri};

/// An answer, or why there is none.
pub(crate) type Answer = Result<Value, (ErrorCode, String)>;

/// Returns the answer to a request.
pub(crate) fn answer(workspace: &Workspace, method: &str, params: Value) -> Answer {
    match method {
        HoverRequest::METHOD => with::<HoverRequest>(params, |params| {
            Ok(at(workspace, &params.text_document_position_params, hover::hover))
        }),
        GotoDefinition::METHOD => with::<GotoDefinition>(params, |params| {
            let definitions = at(workspace, &params.text_document_position_params, |here, at| {
                Some(navigate::definitions(here, at)).filter(|definitions| !definitions.is_empty())
            });
            Ok(definitions.map(Into::into))
        }),
        References::METHOD => with::<References>(params, |params| {
            let with_definition = params.context.include_declaration;
            Ok(at(workspace, &params.text_document_position, |here, at| {
                Some(navigate::references(here, at, with_definition))
            }))
        }),
        DocumentHighlightRequest::METHOD => with::<DocumentHighlightRequest>(params, |params| {
            Ok(at(workspace, &params.text_document_position_params, |here, at| Some(navigate::highlights(here, at))))
        }),
        Completion::METHOD => with::<Completion>(params, |params| {
            let items = at(workspace, &params.text_document_position, |here, at| Some(completion::complete(here, at)));
            Ok(items.map(Into::into))
        }),
        ResolveCompletionItem::METHOD => {
            with::<ResolveCompletionItem>(params, |item| Ok(completion::resolve(workspace, item)))
        }
        DocumentSymbolRequest::METHOD => with::<DocumentSymbolRequest>(params, |params| {
            let here = workspace.here(params.text_document.uri.as_str());
            Ok(here.map(|here| outline::of(&here).into()))
        }),
        WorkspaceSymbolRequest::METHOD => with::<WorkspaceSymbolRequest>(params, |params| {
            Ok(Some(WorkspaceSymbolResponse::Flat(outline::of_all(workspace, &params.query))))
        }),
        FoldingRangeRequest::METHOD => with::<FoldingRangeRequest>(params, |params| {
            let here = workspace.here(params.text_document.uri.as_str());
            Ok(here.map(|here| folding::of(&here)))
        }),
        Formatting::METHOD => with::<Formatting>(params, |params| {
            let uri = params.text_document.uri.as_str();
            Ok(workspace.here(uri).and_then(|here| layout::format(&here)))
        }),
        CodeActionRequest::METHOD => with::<CodeActionRequest>(params, |params| {
            let here = workspace.here(params.text_document.uri.as_str());
            Ok(here.map(|here| actions::of(&here, &params)))
        }),
        PrepareRenameRequest::METHOD => {
            with::<PrepareRenameRequest>(params, |params| Ok(at(workspace, &params, rename::prepare)))
        }
        Rename::METHOD => with::<Rename>(params, |params| {
            let place = &params.text_document_position;
            let Some(here) = workspace.here(place.text_document.uri.as_str()) else { return Ok(None) };
            let at = here.byte(place.position);
            rename::rename(&here, at, &params.new_name).map(Some).map_err(|message| (ErrorCode::RequestFailed, message))
        }),
        SemanticTokensFullRequest::METHOD => with::<SemanticTokensFullRequest>(params, |params| {
            let here = workspace.here(params.text_document.uri.as_str());
            Ok(here.map(|here| tokens::of(&here).into()))
        }),
        _ => Err((ErrorCode::MethodNotFound, format!("the method '{method}' is not known"))),
    }
}

/// Calls a function with the parameters of a request.
fn with<R: Request>(params: Value, answer: impl FnOnce(R::Params) -> Result<R::Result, (ErrorCode, String)>) -> Answer {
    let params = serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))?;
    serde_json::to_value(answer(params)?).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}

/// Calls a function with a position in a file.
fn at<T>(
    workspace: &Workspace,
    params: &TextDocumentPositionParams,
    answer: impl FnOnce(&Here<'_>, usize) -> Option<T>,
) -> Option<T> {
    let here = workspace.here(params.text_document.uri.as_str())?;
    let at = here.byte(params.position);
    answer(&here, at)
}

/// What a notification changed.
#[derive(Default)]
pub(crate) struct Change {
    /// The document that was closed.
    pub closed: Option<String>,
    /// The document whose findings come first; empty if another file changed.
    pub changed: Option<String>,
    /// The message that the editor shows.
    pub told: Option<String>,
}

/// Applies a notification. Those that are not known or have other parameters change nothing.
pub(crate) fn notified(workspace: &mut Workspace, method: &str, params: Value, is_watched: bool) -> Change {
    let mut change = Change::default();
    match method {
        DidOpenTextDocument::METHOD => {
            let Some(params) = read::<DidOpenTextDocument>(params) else { return change };
            if !is_watched {
                workspace.refresh();
            }
            let document = params.text_document;
            let uri = document.uri.as_str().to_owned();
            workspace.open(uri.clone(), document.version, document.text);
            change.changed = Some(uri);
        }
        DidChangeTextDocument::METHOD => {
            let Some(params) = read::<DidChangeTextDocument>(params) else { return change };
            let uri = params.text_document.uri.as_str();
            workspace.change(uri, params.text_document.version, params.content_changes);
            change.changed = Some(uri.to_owned());
        }
        DidCloseTextDocument::METHOD => {
            let Some(params) = read::<DidCloseTextDocument>(params) else { return change };
            let uri = params.text_document.uri.as_str();
            workspace.close(uri);
            change.closed = Some(uri.to_owned());
            change.changed = Some(String::new());
        }
        DidSaveTextDocument::METHOD if !is_watched => {
            workspace.refresh();
            change.changed = Some(String::new());
        }
        DidChangeWatchedFiles::METHOD => {
            let Some(params) = read::<DidChangeWatchedFiles>(params) else { return change };
            let events = params.changes.into_iter().filter(|event| {
                matches!(event.typ, FileChangeType::CREATED | FileChangeType::CHANGED | FileChangeType::DELETED)
            });
            for event in events {
                if let Some(told) = workspace.changed_on_disk(event.uri.as_str()) {
                    change.told = Some(told);
                }
            }
            change.changed = Some(String::new());
        }
        DidChangeWorkspaceFolders::METHOD => {
            let Some(params) = read::<DidChangeWorkspaceFolders>(params) else { return change };
            for folder in params.event.removed.iter().filter_map(|folder| uri::path(folder.uri.as_str())) {
                workspace.remove_root(&folder);
            }
            for folder in params.event.added.iter().filter_map(|folder| uri::path(folder.uri.as_str())) {
                change.told = workspace.add_root(&folder).or(change.told);
            }
            change.changed = Some(String::new());
        }
        _ => {}
    }
    change
}

fn read<N: Notification>(params: Value) -> Option<N::Params> {
    serde_json::from_value(params).ok()
}

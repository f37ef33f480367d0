//! The handshake: what client and server can do.

use std::path::PathBuf;

use brine_authoring_model::lines::Units;
use lsp_server::Request;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CompletionOptions,
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, FoldingRangeProviderCapability, GlobPattern,
    HoverProviderCapability, InitializeParams, OneOf, PositionEncodingKind, Registration, RegistrationParams,
    RenameOptions, SaveOptions, SemanticTokensFullOptions, SemanticTokensLegend, SemanticTokensOptions,
    SemanticTokensServerCapabilities, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, WorkDoneProgressOptions, WorkspaceFoldersServerCapabilities,
    WorkspaceServerCapabilities,
};
use serde_json::{Value, json};

use crate::{tokens, uri};

/// The largest number of folders.
const MAX_FOLDERS: usize = 50;

/// What a client says about itself.
pub(crate) struct Client {
    /// What columns count.
    pub units: Units,
    /// Its folders.
    pub folders: Vec<PathBuf>,
    /// Whether it tells when files change.
    pub can_watch: bool,
}

impl Client {
    /// Reads the parameters of `initialize`.
    pub(crate) fn of(params: InitializeParams) -> Self {
        let encodings = params.capabilities.general.and_then(|general| general.position_encodings).unwrap_or_default();
        let units = if encodings.contains(&PositionEncodingKind::UTF8) { Units::Bytes } else { Units::Utf16 };
        let watching = params.capabilities.workspace.and_then(|workspace| workspace.did_change_watched_files);
        let folders = params.workspace_folders.unwrap_or_default();
        let mut folders: Vec<PathBuf> = folders.iter().filter_map(|folder| uri::path(folder.uri.as_str())).collect();
        // As clients before version 3.6 of the protocol name their only folder.
        #[allow(deprecated)]
        let root = params.root_uri.and_then(|root| uri::path(root.as_str()));
        if folders.is_empty() {
            folders.extend(root);
        }
        folders.truncate(MAX_FOLDERS);
        Client {
            units,
            folders,
            can_watch: watching.and_then(|watching| watching.dynamic_registration).unwrap_or_default(),
        }
    }
}

/// Returns the answer to `initialize`.
pub(crate) fn answer(client: &Client, version: &str) -> Value {
    let encoding = match client.units {
        Units::Bytes => PositionEncodingKind::UTF8,
        Units::Utf16 => PositionEncodingKind::UTF16,
        Units::Characters => PositionEncodingKind::UTF32,
    };
    let no_progress = WorkDoneProgressOptions::default();
    let capabilities = ServerCapabilities {
        position_encoding: Some(encoding),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", ":", "/", "'", "\"", "[", "|", " "].map(str::to_owned).to_vec()),
            resolve_provider: Some(true),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        workspace_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::SOURCE_FIX_ALL]),
            ..CodeActionOptions::default()
        })),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: no_progress,
        })),
        semantic_tokens_provider: Some(SemanticTokensServerCapabilities::SemanticTokensOptions(
            SemanticTokensOptions {
                legend: SemanticTokensLegend {
                    token_types: tokens::TYPES.to_vec(),
                    token_modifiers: tokens::MODIFIERS.to_vec(),
                },
                range: Some(false),
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            },
        )),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: None,
        }),
        ..ServerCapabilities::default()
    };
    json!({"capabilities": capabilities, "serverInfo": {"name": "brine", "version": version}})
}

/// Returns the request to tell when files change.
pub(crate) fn watch() -> Request {
    let watchers = vec![FileSystemWatcher { glob_pattern: GlobPattern::String("**/*".to_owned()), kind: None }];
    let options = DidChangeWatchedFilesRegistrationOptions { watchers };
    let registration = Registration {
        id: "files".to_owned(),
        method: "workspace/didChangeWatchedFiles".to_owned(),
        register_options: serde_json::to_value(options).ok(),
    };
    let params = RegistrationParams { registrations: vec![registration] };
    Request::new("brine-watch".to_owned().into(), "client/registerCapability".to_owned(), params)
}

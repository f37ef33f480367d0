//! A language server for SLS, pillar, top and reactor files and templates, for `brine lsp`.
//!
//! | module | owns |
//! |---|---|
//! | `wire` | messages on the pipes, within bounds |
//! | `server` | the loop: one message after the other, findings when nothing waits |
//! | `handshake` | what the server can do |
//! | `requests` | which function answers which request |
//! | `workspace` | the trees of the client's folders, and the open documents |
//! | `uri`, `convert` | URIs and positions of the protocol |
//! | `findings`, `actions` | findings as diagnostics, and their fixes |
//! | `navigate`, `rename` | definitions, references, new names |
//! | `hover`, `documentation` | what a symbol is |
//! | `completion` | what may be typed |
//! | `outline`, `folding`, `tokens`, `layout` | symbols of a file, ranges to fold, colours, formatting |
//!
//! Nothing is run: no command, no function of Salt, no template. Files are read below the client's folders alone.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod actions;
mod completion;
mod convert;
mod documentation;
mod findings;
mod folding;
mod handshake;
mod hover;
mod layout;
mod navigate;
mod outline;
mod rename;
mod requests;
mod server;
#[cfg(test)]
mod tests;
mod tokens;
mod uri;
mod wire;
mod workspace;

use std::io::{BufRead, Write};

use brine_authoring_model::Catalogue;

pub use server::End;

/// Serves a client until it closes its side or asks the server to exit. `version` is shown to the client.
///
/// # Errors
/// The pipes fail, or the client sends something else than the protocol.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    catalogue: Catalogue,
    version: &str,
) -> std::io::Result<End> {
    server::serve(input, output, catalogue, version)
}

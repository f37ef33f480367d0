//! What may be typed at a position.

mod data;
mod template;

use std::ops::Range;

use brine_authoring_model::catalogue::Functions;
use brine_authoring_model::cursor::Cursor;
use brine_authoring_model::{FileKind, Signature};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemLabelDetails, CompletionList, CompletionTextEdit, Documentation,
    MarkupContent, MarkupKind, TextEdit,
};
use serde_json::json;

pub(crate) use data::written;

use crate::documentation::{self, Of};
use crate::workspace::{Here, Workspace};

/// The largest number of items; with more the client asks again for each letter.
const MAX_ITEMS: usize = 1000;

/// Returns what may be typed at a position.
pub(crate) fn complete(here: &Here<'_>, at: usize) -> CompletionList {
    let Some(cursor) = Cursor::at(&here.file.text, at) else { return CompletionList::default() };
    let (Cursor::Data { word, .. } | Cursor::Tag { word, .. }) = &cursor;
    let typed = here.file.text.get(word.start..at.min(word.end)).unwrap_or_default().to_lowercase();
    let mut items = Items { here, word: word.clone(), typed, found: Vec::new(), is_cut: false };
    match &cursor {
        Cursor::Data { path, is_followed, .. } => match here.file.kind {
            FileKind::State | FileKind::Reactor | FileKind::Pillar | FileKind::Top | FileKind::PillarTop => {
                data::complete(&mut items, path, *is_followed);
            }
            FileKind::Template | FileKind::Python | FileKind::Other => {}
        },
        Cursor::Tag { what, .. } => template::complete(&mut items, what),
    }
    CompletionList { is_incomplete: items.is_cut, items: items.found }
}

/// The offered items.
struct Items<'h, 'w> {
    here: &'h Here<'w>,
    word: Range<usize>,
    typed: String,
    found: Vec<CompletionItem>,
    is_cut: bool,
}

impl<'w> Items<'_, 'w> {
    /// Adds an item that replaces the word. `detail` is shown beside it.
    fn add(&mut self, label: &str, new: &str, kind: CompletionItemKind, detail: &str) -> Option<&mut CompletionItem> {
        if !fits(label, &self.typed) && !fits(new, &self.typed) {
            return None;
        }
        if self.found.len() >= MAX_ITEMS {
            self.is_cut = true;
            return None;
        }
        if self.found.iter().rev().take(20).any(|have| have.label == label) {
            return None;
        }
        let edit = TextEdit { range: self.here.range(&self.word), new_text: new.to_owned() };
        self.found.push(CompletionItem {
            label: label.to_owned(),
            kind: Some(kind),
            detail: Some(detail.to_owned()).filter(|detail| !detail.is_empty()),
            filter_text: Some(new.to_owned()),
            text_edit: Some(CompletionTextEdit::Edit(edit)),
            ..CompletionItem::default()
        });
        self.found.last_mut()
    }

    /// Adds an item with its documentation.
    fn add_with(&mut self, label: &str, new: &str, kind: CompletionItemKind, documentation: &str) {
        if let Some(item) = self.add(label, new, kind, "") {
            item.documentation = Some(markdown(documentation.to_owned()));
        }
    }

    /// Adds a function, whose documentation the client asks for.
    fn add_function(&mut self, of: Of, signature: &Signature, new: &str) {
        let first = signature.doc.trim().lines().next().unwrap_or_default();
        let name = signature.name.clone();
        if let Some(item) = self.add(&name, new, CompletionItemKind::FUNCTION, "") {
            item.label_details = Some(CompletionItemLabelDetails { detail: None, description: Some(first.to_owned()) });
            item.data = Some(json!({"of": label(of), "name": name}));
        }
    }

    /// Returns the functions of a kind that a name begins: those of the program and of the tree, sorted.
    fn functions(&self, of: Of) -> Vec<&'w Signature> {
        let (built_in, custom): (&Functions, &Functions) = {
            let (catalogue, index) = (&self.here.workspace.catalogue, self.here.tree.index());
            match of {
                Of::States => (&catalogue.states, &index.custom.states),
                Of::Execution => (&catalogue.execution, &index.custom.execution),
                Of::Runners => (&catalogue.runners, &index.custom.runners),
                Of::Wheel => (&catalogue.wheel, &index.custom.wheel),
            }
        };
        let mut all: Vec<&Signature> = built_in.iter().chain(custom.iter()).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Adds the arguments of a function.
    fn add_arguments(&mut self, signature: &Signature, end: &str) {
        for (number, param) in signature.params.iter().filter(|param| documentation::is_shown(param)).enumerate() {
            let new = format!("{}{end}", param.name);
            let summary = documentation::summary(param);
            if let Some(item) = self.add(param.name, &new, CompletionItemKind::PROPERTY, param.expected) {
                item.documentation = Some(markdown(summary));
                item.sort_text = Some(format!("{}{number:04}", u8::from(!param.is_required())));
            }
        }
    }
}

/// Whether a text has the letters that are typed, in their order.
fn fits(text: &str, typed: &str) -> bool {
    let mut left = text.chars().flat_map(char::to_lowercase);
    typed.chars().all(|letter| left.any(|c| c == letter))
}

fn markdown(value: String) -> Documentation {
    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
}

fn label(of: Of) -> &'static str {
    match of {
        Of::States => "state",
        Of::Execution => "execution",
        Of::Runners => "runner",
        Of::Wheel => "wheel",
    }
}

/// Adds the documentation of a function to an item.
pub(crate) fn resolve(workspace: &Workspace, mut item: CompletionItem) -> CompletionItem {
    let data = item.data.clone().unwrap_or_default();
    let text = |key: &str| data.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let (of, name) = (text("of"), text("name"));
    let kinds = [Of::States, Of::Execution, Of::Runners, Of::Wheel];
    if let Some(of) = kinds.into_iter().find(|kind| label(*kind) == of) {
        let describe =
            |tree| documentation::function(&workspace.catalogue, tree, of, &name).map(documentation::of_function);
        let bare = brine_authoring_model::Tree::of_texts([]);
        let description = workspace.roots.iter().find_map(|root| describe(&root.tree)).or_else(|| describe(&bare));
        item.documentation = description.map(markdown);
    }
    item
}

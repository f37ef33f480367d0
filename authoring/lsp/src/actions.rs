//! Fixes of findings as code actions.

use std::collections::HashMap;

use brine_lint::{Fix, fixes};
use lsp_types::{CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, TextEdit, WorkspaceEdit};

use crate::findings;
use crate::workspace::Here;

/// Returns the fixes of the findings in a range, the safe ones first, and one for all safe fixes of the file.
pub(crate) fn of(here: &Here<'_>, params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
    let wants = |kind: &CodeActionKind| {
        let only = params.context.only.as_deref();
        only.is_none_or(|only| only.iter().any(|requested| kind.as_str().starts_with(requested.as_str())))
    };
    let (start, end) = (here.byte(params.range.start), here.byte(params.range.end));
    let findings = findings::of(here);
    let mut actions = Vec::new();
    let touches = |span: &std::ops::Range<usize>| span.start <= end && start <= span.end;
    let in_range = findings.iter().filter(|finding| touches(&finding.span));
    for finding in in_range.filter(|_| wants(&CodeActionKind::QUICKFIX)) {
        let Some(fix) = &finding.fix else { continue };
        actions.push(CodeAction {
            title: sentence(&fix.title),
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![findings::diagnostic(here, finding)]),
            edit: edit(here, changes(here, fix)),
            is_preferred: Some(fix.is_safe),
            ..CodeAction::default()
        });
    }
    actions.sort_by_key(|action| action.is_preferred != Some(true));
    if wants(&CodeActionKind::SOURCE_FIX_ALL) {
        let (new, applied) = fixes::apply(&here.file.text, &findings);
        if applied > 0 {
            let whole = TextEdit { range: here.range(&(0..here.file.text.len())), new_text: new };
            actions.push(CodeAction {
                title: format!("Apply all {applied} safe fixes"),
                kind: Some(CodeActionKind::SOURCE_FIX_ALL),
                edit: edit(here, vec![whole]),
                ..CodeAction::default()
            });
        }
    }
    actions.into_iter().map(CodeActionOrCommand::CodeAction).collect()
}

fn changes(here: &Here<'_>, fix: &Fix) -> Vec<TextEdit> {
    let change =
        |(span, text): &(std::ops::Range<usize>, String)| TextEdit { range: here.range(span), new_text: text.clone() };
    fix.edits.iter().map(change).collect()
}

fn edit(here: &Here<'_>, changes: Vec<TextEdit>) -> Option<WorkspaceEdit> {
    // The key of the map is a URI, which is only ever compared as a text.
    #[allow(clippy::mutable_key_type)]
    let changes = HashMap::from([(here.uri(&here.file.path)?, changes)]);
    Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}

/// Returns a title that begins with a capital letter.
fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

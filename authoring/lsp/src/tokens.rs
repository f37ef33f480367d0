//! The colours of YAML and Jinja mixed: semantic tokens.

use std::ops::Range;

use brine_authoring_model::{File, Symbol};
use brine_jinja::view::TokenKind;
use brine_value::Value;
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;
use lsp_types::{SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens};

use crate::workspace::Here;

/// The types, in the order of their numbers.
pub(crate) const TYPES: [SemanticTokenType; 12] = [
    SemanticTokenType::CLASS,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::PROPERTY,
    SemanticTokenType::KEYWORD,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::STRING,
    SemanticTokenType::NUMBER,
    SemanticTokenType::OPERATOR,
    SemanticTokenType::NAMESPACE,
    SemanticTokenType::MACRO,
    SemanticTokenType::COMMENT,
];
/// The modifiers, in the order of their bits.
pub(crate) const MODIFIERS: [SemanticTokenModifier; 2] =
    [SemanticTokenModifier::DEFINITION, SemanticTokenModifier::DEFAULT_LIBRARY];

const DEFINITION: u32 = 1;
const LIBRARY: u32 = 2;
/// The words of Jinja.
const KEYWORDS: [&str; 45] = [
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "in",
    "endfor",
    "set",
    "endset",
    "do",
    "macro",
    "endmacro",
    "call",
    "endcall",
    "filter",
    "endfilter",
    "with",
    "endwith",
    "raw",
    "endraw",
    "include",
    "import",
    "from",
    "extends",
    "block",
    "endblock",
    "import_yaml",
    "import_json",
    "import_text",
    "load_yaml",
    "load_json",
    "load_text",
    "endload",
    "as",
    "context",
    "without",
    "ignore",
    "missing",
    "not",
    "and",
    "or",
    "is",
    "true",
    "false",
    "none",
];

/// What a range is: its type by number, and its modifiers.
struct Token {
    kind: SemanticTokenType,
    modifiers: u32,
}

/// The tokens of a text, painted one over the other.
struct Canvas<'f> {
    file: &'f File,
    tokens: Vec<Token>,
    /// For each byte the number of its token, from 1.
    painted: Vec<u32>,
}

impl Canvas<'_> {
    fn paint(&mut self, span: &Range<usize>, kind: SemanticTokenType, modifiers: u32) {
        if let Some(bytes) = self.painted.get_mut(span.clone()) {
            self.tokens.push(Token { kind, modifiers });
            bytes.fill(u32::try_from(self.tokens.len()).unwrap_or_default());
        }
    }

    fn clear(&mut self, span: &Range<usize>) {
        if let Some(bytes) = self.painted.get_mut(span.clone()) {
            bytes.fill(0);
        }
    }

    fn data(&mut self, node: &SourceNode) {
        if node.is_repeated {
            return;
        }
        match &node.content {
            Content::Scalar { value, .. } => {
                let kind = match value {
                    Value::Bool(_) | Value::Nil => SemanticTokenType::KEYWORD,
                    Value::Int(_) | Value::Float(_) => SemanticTokenType::NUMBER,
                    _ => SemanticTokenType::STRING,
                };
                self.paint(&node.span, kind, 0);
            }
            Content::List(items) => items.iter().for_each(|item| self.data(item)),
            Content::Map(entries) => {
                for (key, value) in entries {
                    self.data(value);
                    if !key.is_repeated {
                        self.paint(&key.span, SemanticTokenType::PROPERTY, 0);
                    }
                }
            }
        }
    }

    /// Paints comments of Jinja, and lines that are comments of YAML.
    fn comments(&mut self) {
        let text = std::sync::Arc::clone(&self.file.text);
        let mut at = 0;
        while let Some(start) = text.get(at..).and_then(|rest| rest.find("{#")).map(|start| at + start) {
            let end = text[start..].find("#}").map_or(text.len(), |end| start + end + 2);
            let in_tag = self.file.view.iter().flat_map(brine_jinja::view::View::tags).any(|tag| tag.contains(&start));
            if !in_tag {
                self.paint(&(start..end), SemanticTokenType::COMMENT, 0);
            }
            at = end;
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let first = start + line.len() - line.trim_start().len();
            if line.trim_start().starts_with('#') && self.painted.get(first) == Some(&0) {
                self.paint(&(first..start + line.trim_end().len()), SemanticTokenType::COMMENT, 0);
            }
            start += line.len();
        }
    }

    fn template(&mut self) {
        let Some(view) = &self.file.view else { return };
        for tag in view.tags() {
            self.clear(&tag);
            let is_whole = tag.len() >= 4;
            if is_whole {
                self.paint(&(tag.start..tag.start + 2), SemanticTokenType::OPERATOR, 0);
                let end = tag.end - 2..tag.end;
                if self.file.text.get(end.clone()).is_some_and(|end| end == "}}" || end == "%}") {
                    self.paint(&end, SemanticTokenType::OPERATOR, 0);
                }
            }
        }
        for (kind, span) in view.tokens() {
            let word = self.file.text.get(span.clone()).unwrap_or_default();
            let kind = match kind {
                TokenKind::Name if KEYWORDS.contains(&word) => SemanticTokenType::KEYWORD,
                TokenKind::Name if self.file.text[..span.start].ends_with('.') => SemanticTokenType::PROPERTY,
                TokenKind::Name => SemanticTokenType::VARIABLE,
                TokenKind::Number => SemanticTokenType::NUMBER,
                TokenKind::String => SemanticTokenType::STRING,
                TokenKind::Operator => SemanticTokenType::OPERATOR,
            };
            self.paint(&span, kind, 0);
        }
    }

    fn symbols(&mut self) {
        for one in self.file.symbols() {
            let definition = if one.is_definition { DEFINITION } else { 0 };
            let (kind, modifiers) = match &one.symbol {
                Symbol::Id { .. } => (SemanticTokenType::CLASS, definition),
                Symbol::State(_) | Symbol::Reaction { .. } | Symbol::Function(_) => {
                    (SemanticTokenType::FUNCTION, LIBRARY)
                }
                Symbol::Argument { .. } | Symbol::Parameter { .. } => (SemanticTokenType::PARAMETER, 0),
                Symbol::Keyword(_) => (SemanticTokenType::KEYWORD, 0),
                Symbol::Sls(_) | Symbol::PillarSls(_) => (SemanticTokenType::NAMESPACE, 0),
                Symbol::Served(_) | Symbol::Path(_) => (SemanticTokenType::STRING, 0),
                Symbol::Pillar(_) | Symbol::Grain(_) => (SemanticTokenType::PROPERTY, definition),
                Symbol::Variable(_) | Symbol::Member { .. } => (SemanticTokenType::VARIABLE, definition),
                Symbol::Filter(_) | Symbol::Test(_) => (SemanticTokenType::MACRO, LIBRARY),
            };
            self.paint(&one.span, kind, modifiers);
        }
    }
}

/// Returns the tokens of a file.
pub(crate) fn of(here: &Here<'_>) -> SemanticTokens {
    let file = here.file;
    let mut canvas = Canvas { file, tokens: Vec::new(), painted: vec![0; file.text.len()] };
    file.documents.iter().for_each(|document| canvas.data(document));
    canvas.comments();
    canvas.template();
    canvas.symbols();
    let mut data = Vec::new();
    let mut last = (0, 0);
    let (mut line, mut start) = (0, 0);
    for text in file.text.split_inclusive('\n') {
        let visible = start..start + text.trim_end_matches(['\n', '\r']).len();
        let mut at = visible.start;
        let mut column = 0;
        while at < visible.end {
            let number = canvas.painted[at];
            let mut end = at + 1;
            while end < visible.end && (canvas.painted[end] == number || !file.text.is_char_boundary(end)) {
                end += 1;
            }
            let length = here.workspace.units.length(file.text.get(at..end).unwrap_or_default());
            let token = (number as usize).checked_sub(1).and_then(|number| canvas.tokens.get(number));
            if let Some(token) = token {
                let delta_line = line - last.0;
                let delta_start = if delta_line == 0 { column - last.1 } else { column };
                last = (line, column);
                data.push(SemanticToken {
                    delta_line,
                    delta_start,
                    length: u32::try_from(length).unwrap_or(u32::MAX),
                    token_type: TYPES.iter().position(|kind| *kind == token.kind).map_or(0, |at| at as u32),
                    token_modifiers_bitset: token.modifiers,
                });
            }
            column += u32::try_from(length).unwrap_or_default();
            at = end;
        }
        start += text.len();
        line += 1;
    }
    SemanticTokens { result_id: None, data }
}

//! What may be typed at a position in a tag.

use std::ops::Range;

use brine_jinja::view::{Half, Root, TokenKind, half};

use super::InTag;

/// The words of tags that read a template.
const READING: [&str; 7] = ["import", "from", "include", "extends", "import_yaml", "import_json", "import_text"];

/// Returns what may be typed at a position, and the word there; `None` outside of tags.
pub(super) fn at(text: &str, at: usize) -> Option<(InTag, Range<usize>)> {
    let Half { is_statement, tokens, string } = half(text, at)?;
    let words = Words { text, tokens: &tokens };
    if let Some(start) = string {
        return Some(words.in_string(start, at));
    }
    // The word at the position, and what stands before it.
    let word = match tokens.last() {
        Some((TokenKind::Name, span)) if span.end == at => span.start..at,
        _ => at..at,
    };
    let count = tokens.len() - usize::from(!word.is_empty());
    // The word goes on behind the position.
    let after = &text[at..];
    let end = at + after.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(after.len());
    Some((words.outside(count, is_statement), word.start..end))
}

struct Words<'t> {
    text: &'t str,
    tokens: &'t [(TokenKind, Range<usize>)],
}

impl<'t> Words<'t> {
    fn word(&self, at: usize) -> &'t str {
        self.tokens.get(at).and_then(|(_, span)| self.text.get(span.clone())).unwrap_or_default()
    }

    /// Returns the word before the first ones of this number.
    fn last(&self, count: usize) -> &'t str {
        count.checked_sub(1).map(|at| self.word(at)).unwrap_or_default()
    }

    /// Returns the names of `a.b['c']` that ends before the first words of this number.
    fn chain(&self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        let mut count = count;
        loop {
            let last = self.last(count);
            if last == "]" && self.last(count - 1).starts_with(['\'', '"']) && count > 3 && self.last(count - 2) == "["
            {
                names.push(self.last(count - 1).trim_matches(['\'', '"']).to_owned());
                count -= 3;
                continue;
            }
            if !last.starts_with(|c: char| c == '_' || c.is_alphabetic()) {
                return Vec::new();
            }
            names.push(last.to_owned());
            if count < 2 || self.last(count - 1) != "." {
                break;
            }
            count -= 2;
        }
        names.reverse();
        names
    }

    fn outside(&self, count: usize, is_statement: bool) -> InTag {
        match self.last(count) {
            "" if is_statement => InTag::Statement,
            "|" => InTag::Filter,
            "is" => InTag::Test,
            "not" if self.last(count.saturating_sub(1)) == "is" => InTag::Test,
            "." => match &self.chain(count - 1)[..] {
                [salt] if salt == "salt" => InTag::Function { module: None },
                [salt, module] if salt == "salt" => InTag::Function { module: Some(module.clone()) },
                [root, above @ ..] if mapping(root).is_some() => {
                    let root = mapping(root).unwrap_or(Root::Pillar);
                    InTag::Key { root, above: above.to_vec(), is_path: false }
                }
                [variable] => InTag::Member { variable: variable.clone() },
                _ => InTag::Nothing,
            },
            "import" | ","
                if is_statement && self.word(0) == "from" && (2..count).any(|at| self.word(at) == "import") =>
            {
                InTag::Imported { template: self.word(1).trim_matches(['\'', '"']).to_owned() }
            }
            _ if is_statement && count == 1 && matches!(self.word(0), "macro" | "block" | "set" | "for") => {
                InTag::Nothing
            }
            _ => InTag::Variable { call: self.call(count) },
        }
    }

    /// Returns the function of the innermost call that is open.
    fn call(&self, count: usize) -> Option<String> {
        let mut depth = 0_usize;
        for at in (0..count).rev() {
            match self.word(at) {
                ")" | "]" | "}" => depth += 1,
                "(" if depth == 0 => {
                    return match &self.chain(at)[..] {
                        [salt, full] if salt == "salt" => Some(full.clone()),
                        [salt, module, function] if salt == "salt" => Some(format!("{module}.{function}")),
                        _ => None,
                    };
                }
                "(" | "[" | "{" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        None
    }

    /// Returns what may be typed in a string that begins at a position.
    fn in_string(&self, start: usize, at: usize) -> (InTag, Range<usize>) {
        let count = self.tokens.len();
        let after = &self.text[at..];
        let end =
            at + after.find(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '}' | '%')).unwrap_or(after.len());
        let whole = start..end;
        // The part of a path behind its last colon.
        let typed = &self.text[start..at];
        let part = start + typed.rfind(':').map_or(0, |colon| colon + 1);
        let above: Vec<String> = typed.split(':').map(str::to_owned).collect();
        let above = above[..above.len() - 1].to_vec();
        match self.last(count) {
            "[" => match &self.chain(count - 1)[..] {
                [salt] if salt == "salt" => (InTag::Function { module: None }, whole),
                [root, above @ ..] if mapping(root).is_some() => {
                    let root = mapping(root).unwrap_or(Root::Pillar);
                    (InTag::Key { root, above: above.to_vec(), is_path: false }, whole)
                }
                _ => (InTag::Nothing, whole),
            },
            "(" => {
                let names: Vec<String> = self.chain(count - 1);
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                match &names[..] {
                    ["salt", "pillar.get" | "pillar.fetch"] | ["salt", "pillar", "get" | "fetch"] => {
                        (InTag::Key { root: Root::Pillar, above, is_path: true }, part..end)
                    }
                    ["salt", "grains.get"] | ["salt", "grains", "get"] => {
                        (InTag::Key { root: Root::Grains, above, is_path: true }, part..end)
                    }
                    [root, above @ .., "get"] if mapping(root).is_some() => {
                        let root = mapping(root).unwrap_or(Root::Pillar);
                        let above = above.iter().map(|key| (*key).to_owned()).collect();
                        (InTag::Key { root, above, is_path: false }, whole)
                    }
                    _ => (InTag::Nothing, whole),
                }
            }
            word if count == 1 && READING.contains(&word) => (InTag::Template, whole),
            _ => (InTag::Nothing, whole),
        }
    }
}

/// Returns the mapping that a variable is.
fn mapping(name: &str) -> Option<Root> {
    match name {
        "pillar" => Some(Root::Pillar),
        "grains" => Some(Root::Grains),
        _ => None,
    }
}

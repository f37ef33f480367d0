//! What a template reads, so that its rendering for one event may stand for that of another: the keys of `data` and
//! whether it reads the tag. A template that may read anything else is rendered for each event.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::side::Reactions;

/// The maximum number of renderings that are kept, and of bytes of their keys.
const KEPT: usize = 20_000;
const KEPT_BYTES: usize = 32 << 20;

/// The words of templates that are known to read nothing but their operands. Any other name makes a template unknown.
const PURE: &[&str] = &[
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "in",
    "not",
    "and",
    "or",
    "is",
    "set",
    "endset",
    "defined",
    "undefined",
    "none",
    "None",
    "true",
    "True",
    "false",
    "False",
    "string",
    "number",
    "mapping",
    "sequence",
    "iterable",
    "loop",
    "first",
    "last",
    "index",
    "index0",
    "length",
    "json",
    "tojson",
    "yaml_encode",
    "yaml_dquote",
    "yaml_squote",
    "default",
    "d",
    "lower",
    "upper",
    "title",
    "capitalize",
    "trim",
    "replace",
    "int",
    "float",
    "list",
    "join",
    "sort",
    "unique",
    "reverse",
    "abs",
    "round",
    "regex_match",
    "regex_search",
    "regex_replace",
    "startswith",
    "endswith",
    "split",
    "strip",
    "lstrip",
    "rstrip",
    "range",
    "raw",
    "endraw",
    "get",
    "items",
    "keys",
    "values",
    "equalto",
    "match",
    "divisibleby",
];
/// Variables of every template: a template that gives one of these names to something else is unknown.
const GLOBALS: &[&str] =
    &["data", "tag", "salt", "grains", "pillar", "opts", "self", "caller", "varargs", "kwargs", "context", "rule"];
/// The methods of a mapping that read all of it.
const WHOLE: &[&str] = &[
    "items",
    "keys",
    "values",
    "get",
    "copy",
    "pop",
    "popitem",
    "update",
    "setdefault",
    "clear",
    "iteritems",
    "fromkeys",
];

/// What a template reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    /// The keys of `data`.
    pub data: BTreeSet<String>,
    /// Whether it reads `tag`.
    pub tag: bool,
}

impl Inputs {
    /// Adds what another template reads.
    pub fn extend(&mut self, other: Inputs) {
        self.data.extend(other.data);
        self.tag |= other.tag;
    }

    /// Returns what the source of a template reads; `None` if that is not certain.
    pub fn of(source: &str) -> Option<Self> {
        // Another renderer, and line statements, are not read here.
        if source.starts_with("#!") && !source.starts_with("#!jinja|yaml\n") {
            return None;
        }
        let mut inputs = Inputs::default();
        let mut variables = BTreeSet::new();
        let mut rest = source;
        while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min() {
            let end = match &rest[at..at + 2] {
                "{{" => "}}",
                "{%" => "%}",
                _ => "#}",
            };
            let inside = &rest[at + 2..];
            let length = inside.find(end)?;
            if end != "#}" {
                inputs.read(&inside[..length], &mut variables)?;
            }
            rest = &inside[length + 2..];
        }
        Some(inputs)
    }

    /// Reads the inside of one tag.
    fn read(&mut self, text: &str, variables: &mut BTreeSet<String>) -> Option<()> {
        let tokens = tokens(text)?;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let next = |offset: usize| tokens.get(at + offset);
            match token {
                Token::Word("data") if at == 0 || tokens[at - 1] != Token::Sign('.') => {
                    match (next(1), next(2), next(3)) {
                        // `data.get('key')`
                        (Some(Token::Sign('.')), Some(Token::Word("get")), Some(Token::Sign('('))) => {
                            let Some(Token::Text(key)) = next(4) else { return None };
                            if !matches!(next(5), Some(Token::Sign(',' | ')'))) {
                                return None;
                            }
                            self.data.insert((*key).to_owned());
                            at += 4;
                        }
                        (Some(Token::Sign('.')), Some(Token::Word(key)), _) if !WHOLE.contains(key) => {
                            self.data.insert((*key).to_owned());
                            at += 2;
                        }
                        (Some(Token::Sign('[')), Some(Token::Text(key)), Some(Token::Sign(']'))) => {
                            self.data.insert((*key).to_owned());
                            at += 3;
                        }
                        _ => return None,
                    }
                }
                Token::Word("tag") if at == 0 || tokens[at - 1] != Token::Sign('.') => self.tag = true,
                // `for x in`, `for k, v in`, `set x =`
                Token::Word("for" | "set") if at == 0 => {
                    let names =
                        tokens[1..].iter().take_while(|token| !matches!(token, Token::Word("in") | Token::Sign('=')));
                    for name in names {
                        match name {
                            Token::Word(name) if !GLOBALS.contains(name) => {
                                variables.insert((*name).to_owned());
                            }
                            Token::Sign(',') => {}
                            _ => return None,
                        }
                    }
                }
                // An attribute of what is known already.
                Token::Word(name) if at > 0 && tokens[at - 1] == Token::Sign('.') => {
                    // A call of a method that is not known may do anything.
                    if next(1) == Some(&Token::Sign('(')) && !PURE.contains(name) {
                        return None;
                    }
                }
                Token::Word(name) if PURE.contains(name) || variables.contains(*name) => {}
                // The name of a keyword argument.
                Token::Word(_) if next(1) == Some(&Token::Sign('=')) && next(2) != Some(&Token::Sign('=')) => {}
                Token::Word(_) => return None,
                Token::Sign(_) | Token::Text(_) => {}
            }
            at += 1;
        }
        Some(())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

/// Returns the words, strings and signs of the inside of a tag; `None` if a string has escapes or no end.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']);
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if c.is_ascii_digit() {
            rest = &rest[word..];
        } else if word > 0 {
            tokens.push(Token::Word(&rest[..word]));
            rest = &rest[word..];
        } else if c == '\'' || c == '"' {
            let end = rest[1..].find(c)?;
            let inside = &rest[1..=end];
            if inside.contains('\\') {
                return None;
            }
            tokens.push(Token::Text(inside));
            rest = &rest[end + 2..];
        } else {
            if !c.is_whitespace() {
                tokens.push(Token::Sign(c));
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(tokens)
}

/// The renderings that are kept, by their inputs.
#[derive(Default)]
pub(super) struct Renderings {
    kept: HashMap<Vec<u8>, Arc<Reactions>>,
    bytes: usize,
}

impl Renderings {
    pub fn get(&self, key: &[u8]) -> Option<Arc<Reactions>> {
        self.kept.get(key).map(Arc::clone)
    }

    pub fn insert(&mut self, key: Vec<u8>, reactions: Arc<Reactions>) {
        if self.kept.len() >= KEPT || self.bytes >= KEPT_BYTES {
            self.kept.clear();
            self.bytes = 0;
        }
        self.bytes += key.len();
        self.kept.insert(key, reactions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_templates_whose_inputs_are_certain_are_known() {
        for (source, expected) in [
            ("a:\n  runner.x.y: []\n", Some((&[][..], false))),
            ("{{ data.id }} {{ data['act'] }} {{ data[\"x\"].y }}", Some((&["act", "id", "x"], false))),
            ("{% if data.get('a', 'b') == \"c\" and tag.split('/')[1] != 'x' %}\n{%- endif -%}", Some((&["a"], true))),
            ("{% for k, v in data.changes.items() %}{{ k }}: {{ v | json }}{% endfor %}", Some((&["changes"], false))),
            ("{# data #}{{ data.id | default('x') }}", Some((&["id"], false))),
            ("{{ data.x | replace(old='a', new='b') }}", None),
            ("{{ data }}", None),
            ("{{ data | json }}", None),
            ("{{ data[tag] }}", None),
            ("{{ data.items() }}", None),
            ("{{ data.get(tag) }}", None),
            ("{{ data.get('a' ~ tag) }}", None),
            ("{{ data['a' ~ tag] }}", None),
            ("{% for salt in data.x %}{% endfor %}{{ salt['a.b']() }}", None),
            ("{% set data = {} %}", None),
            ("{{ salt['mine.get']('x') }}", None),
            ("{% from 'x' import y %}", None),
            ("{{ 'x' | random_hash }}", None),
            ("{{ grains.id }}", None),
            ("{{ now() }}", None),
            ("{{ data.id.foo() }}", None),
            ("{{ show_full_context() }}", None),
            ("#!py\ndef run(): pass\n", None),
            ("#!jinja|yaml\n{{ data.id }}", Some((&["id"], false))),
            ("{{ data.id", None),
        ] {
            let expected =
                expected.map(|(data, tag)| Inputs { data: data.iter().map(|key| (*key).to_owned()).collect(), tag });
            let actual = Inputs::of(source);
            // A keyword argument may be known or not: it is never wrong.
            if source.contains("old=") {
                assert!(actual.is_none_or(|inputs| inputs.data.contains("x")));
                continue;
            }
            assert_eq!(actual, expected, "{source}");
        }
    }
}

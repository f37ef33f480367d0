//! Coverage: which parts of templates were rendered, for tests of states.
//!
//! A template that is compiled while a [`Coverage`] is entered has a marker at its begin and in each branch, loop and
//! macro. A marker is a tag that writes nothing and removes the whitespace that the tag before it would have removed, so
//! lines and output stay as they are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use minijinja::Environment;
use parking_lot::Mutex;

use super::environment::known_names;
use super::syntax::Document;
use super::syntax::nodes::Body;

/// The function that markers call.
const COVERED: &str = "__covered__";

thread_local! {
    static CURRENT: RefCell<Option<Coverage>> = const { RefCell::new(None) };
}

/// Counts of the rendered parts of templates. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Coverage(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// The number of each template, by its text.
    numbers: HashMap<Arc<str>, usize>,
    templates: Vec<Vec<u64>>,
}

/// Leaves a coverage when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Entered {
    outer: Option<Coverage>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

/// A part of a template that is rendered as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The position of its first byte.
    pub start: usize,
    /// The position after its last byte.
    pub end: usize,
    /// The number of times that it was rendered.
    pub count: u64,
}

/// A condition: its branches, and how often it was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The position of its first tag.
    pub at: usize,
    /// How often each branch was rendered; the last one is that of no match, if there is no `else`.
    pub branches: Vec<u64>,
}

/// The coverage of one template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The parts by their start; the first is the whole template.
    pub parts: Vec<Part>,
    /// The conditions by their position.
    pub conditions: Vec<Condition>,
}

impl Covered {
    /// Returns how often the text at a position was rendered.
    pub fn count(&self, at: usize) -> u64 {
        let mut inside = self.parts.iter().filter(|part| part.start <= at && at < part.end);
        inside.next_back().map_or(0, |part| part.count)
    }
}

impl Coverage {
    /// Creates counts of no templates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts what this thread compiles and renders from now on.
    pub fn enter(&self) -> Entered {
        Entered { outer: CURRENT.replace(Some(self.clone())) }
    }

    /// Returns the coverage of a template with this text; all counts are 0 if none was rendered.
    pub fn of(&self, source: &str) -> Covered {
        let counts = self.0.lock();
        let counted = counts.numbers.get(source).and_then(|number| counts.templates.get(*number));
        Layout::of(source).covered(counted.map_or(&[], Vec::as_slice))
    }

    fn marked(&self, source: &str) -> String {
        let layout = Layout::of(source);
        let mut counts = self.0.lock();
        let number = *counts.numbers.get(source).unwrap_or(&counts.templates.len());
        if number == counts.templates.len() {
            counts.numbers.insert(source.into(), number);
            counts.templates.push(vec![0; layout.parts.len()]);
        }
        layout.marked(source, number)
    }

    fn count(&self, template: usize, part: usize) {
        if let Some(count) = self.0.lock().templates.get_mut(template).and_then(|parts| parts.get_mut(part)) {
            *count += 1;
        }
    }
}

/// Returns the source of a template with markers, if this thread counts.
pub(super) fn marked(source: &str) -> Option<String> {
    CURRENT.with_borrow(|current| current.as_ref().map(|coverage| coverage.marked(source)))
}

/// Adds the function that markers call.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function(COVERED, |template: usize, part: usize| {
        CURRENT.with_borrow(|current| current.as_ref().inspect(|coverage| coverage.count(template, part)).is_some())
    });
}

/// A part before it is counted.
#[derive(Debug)]
struct Region {
    /// The position of its marker: the end of the tag that opens it.
    start: usize,
    end: usize,
    condition: Option<usize>,
}

/// The parts and conditions of a template.
#[derive(Debug)]
struct Layout {
    parts: Vec<Region>,
    /// For each condition its position, the part in which it is, and whether it has an `else`.
    conditions: Vec<(usize, usize, bool)>,
}

impl Layout {
    fn of(source: &str) -> Self {
        let document = Document::parse(source, None, &known_names());
        let start = header(source);
        let mut layout =
            Layout { parts: vec![Region { start, end: source.len(), condition: None }], conditions: Vec::new() };
        // The open blocks: their open part and their condition.
        let mut open: Vec<(Option<usize>, Option<usize>)> = Vec::new();
        for tag in document.tags.iter().filter(|tag| matches!(tag.body, Body::Block(_)) && tag.span.start >= start) {
            let inside = open.iter().rev().find_map(|(part, _)| *part).unwrap_or(0);
            let word = document.word(tag);
            match word {
                "if" => {
                    layout.conditions.push((tag.span.start, inside, false));
                    let condition = layout.conditions.len() - 1;
                    let part = layout.open(source, tag.span.end, Some(condition));
                    open.push((part, Some(condition)));
                }
                "for" | "macro" | "call" => {
                    let part = layout.open(source, tag.span.end, None);
                    open.push((part, None));
                }
                "elif" | "else" => {
                    let Some((part, condition)) = open.last_mut() else { continue };
                    layout.close(part.take(), tag.span.start);
                    if let (Some(condition), "else") = (*condition, word) {
                        layout.conditions[condition].2 = true;
                    }
                    *part = layout.open(source, tag.span.end, *condition);
                }
                "endif" | "endfor" | "endmacro" | "endcall" => {
                    if let Some((part, _)) = open.pop() {
                        layout.close(part, tag.span.start);
                    }
                }
                _ => {}
            }
        }
        layout
    }

    /// Opens a part behind a tag; none if the tag is not closed.
    fn open(&mut self, source: &str, start: usize, condition: Option<usize>) -> Option<usize> {
        source[..start].ends_with("%}").then(|| {
            self.parts.push(Region { start, end: source.len(), condition });
            self.parts.len() - 1
        })
    }

    fn close(&mut self, part: Option<usize>, end: usize) {
        if let Some(part) = part {
            self.parts[part].end = end;
        }
    }

    fn marked(&self, source: &str, template: usize) -> String {
        let mut marked = String::with_capacity(source.len() + 32 * self.parts.len());
        let mut copied = 0;
        for (number, part) in self.parts.iter().enumerate() {
            marked.push_str(&source[copied..part.start]);
            copied = part.start;
            let before = &source[..part.start];
            // The first marker keeps a newline after it, which `trim_blocks` would remove.
            let end = match number {
                0 => "+%}",
                _ if before.ends_with("-%}") => "-%}",
                _ if before.ends_with("+%}") => "+%}",
                _ => "%}",
            };
            // Writing into a `String` cannot fail.
            _ = write!(marked, "{{% do {COVERED}({template}, {number}) {end}");
        }
        marked.push_str(&source[copied..]);
        marked
    }

    fn covered(&self, counts: &[u64]) -> Covered {
        let count = |part: usize| counts.get(part).copied().unwrap_or_default();
        let parts = self.parts.iter().enumerate().map(|(number, part)| Part {
            start: if number == 0 { 0 } else { part.start },
            end: part.end,
            count: count(number),
        });
        let conditions = self.conditions.iter().enumerate().map(|(number, &(at, inside, has_else))| {
            let own = self.parts.iter().enumerate().filter(|(_, part)| part.condition == Some(number));
            let mut branches: Vec<u64> = own.map(|(part, _)| count(part)).collect();
            if !has_else {
                branches.push(count(inside).saturating_sub(branches.iter().sum()));
            }
            Condition { at, branches }
        });
        Covered { parts: parts.collect(), conditions: conditions.collect() }
    }
}

/// Returns the position after the lines that choose renderers and options.
fn header(source: &str) -> usize {
    let lines = source.split_inclusive('\n').take_while(|line| line.starts_with("#!") || line.starts_with("#jinja2:"));
    lines.map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocks, Context, Host, ImportCache, Template};

    const TEMPLATE: &str = "#jinja2: {\"trim_blocks\": false}\n\
a: 1
{%- if x == 1 -%}
  one: 1
{%- elif x == 2 %}
two: 2
{%- endif %}
{% for n in range(2) -%}
    {% if n %}n: {{ n }}{% else %}none{% endif %}
{% else %}empty
{% endfor %}
{%- macro m(v) %}{{ v }}{% endmacro %}
b: {{ m(3) }}
";

    fn render(coverage: Option<&Coverage>, blocks: Blocks, x: i64) -> String {
        let _entered = coverage.map(Coverage::enter);
        let mut context = Context::new("base");
        context.set("x", &x.into());
        let template = Template::compile_sharing(&ImportCache::with_blocks(blocks), "t", TEMPLATE).unwrap();
        template.render(&context, &Host::new()).unwrap()
    }

    #[test]
    fn the_output_stays_and_parts_are_counted() {
        for (trim, lstrip) in [(false, false), (true, true), (true, false)] {
            let (coverage, blocks) = (Coverage::new(), Blocks { trim, lstrip });
            for x in [1, 3] {
                assert_eq!(render(Some(&coverage), blocks, x), render(None, blocks, x), "{x} {blocks:?}");
            }
            let covered = coverage.of(TEMPLATE);
            let at = |text: &str| covered.count(TEMPLATE.find(text).unwrap());
            let counts = ["a: 1", "one: 1", "two: 2", "n: {{", "none", "empty", "{{ v }}", "b: "].map(at);
            assert_eq!(counts, [2, 1, 0, 2, 2, 0, 2, 2]);
            let branches: Vec<Vec<u64>> = covered.conditions.into_iter().map(|one| one.branches).collect();
            assert_eq!(branches, [vec![1, 0, 1], vec![2, 2]]);
        }
        assert!(Coverage::new().of(TEMPLATE).parts.iter().all(|part| part.count == 0));
    }

    #[test]
    fn broken_templates_have_parts() {
        for (at, _) in TEMPLATE.char_indices() {
            let _entered = Coverage::new().enter();
            let covered = Coverage::new().of(&TEMPLATE[..at]);
            assert!(covered.parts.iter().all(|part| part.start <= part.end), "{at}");
            _ = Template::compile("t", &TEMPLATE[at..])
                .map(|template| template.render(&Context::new("base"), &Host::new()));
        }
    }
}

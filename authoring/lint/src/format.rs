//! Formats SLS files: whitespace alone, never Jinja, and never the data of any choice of branches.

use std::ops::Range;

use brine_authoring_model::file::is_jinja_and_yaml;
use brine_jinja::view::{Skeleton, View};
use brine_value::Value;

/// A change of whitespace.
type Edit = (Range<usize>, &'static str);

/// Returns a formatted text; `None` if the file cannot be read without a render, so that it is left as it is.
///
/// - No whitespace at the end of lines, no empty lines at the start and the end, one empty line at most between others.
/// - One blank after the dash of an item and after the colon of a key.
/// - A line end at the end of the file.
///
/// A change is made only if the data stay the same in each choice of branches. Tags of Jinja, comments, block scalars and
/// whatever no choice of branches writes stay as they are.
///
/// ```
/// use brine_lint::format::format;
///
/// assert_eq!(format("\na:   \n\n\n  b:   1  \n").as_deref(), Some("a:\n\n  b: 1\n"));
/// assert_eq!(format("a: |\n  x  \n").as_deref(), Some("a: |\n  x  \n"));
/// assert_eq!(format("a: [\n"), None);
/// ```
pub fn format(text: &str) -> Option<String> {
    if !is_jinja_and_yaml(text) {
        return None;
    }
    let view = View::of(text);
    let before = data(&view)?;
    let skeletons: Vec<Skeleton> = (0..view.variants()).map(|variant| view.skeleton(variant, false)).collect();
    let is_written = |(span, _): &Edit| skeletons.iter().any(|skeleton| skeleton.writes(span));
    let edits: Vec<Edit> = edits(text).into_iter().filter(is_written).collect();
    let is_same = |edits: &[Edit]| {
        let changed = apply(text, edits);
        let is_same = data(&View::of(&changed)).is_some_and(|after| after == before);
        is_same.then_some(changed)
    };
    if let Some(changed) = is_same(&edits) {
        return Some(changed);
    }
    Some(apply(text, &harmless_edits(&edits, &|edits| is_same(edits).is_some())))
}

/// Returns the edits that keep the data, found by halves.
fn harmless_edits(edits: &[Edit], is_same: &dyn Fn(&[Edit]) -> bool) -> Vec<Edit> {
    fn within(edits: &[Edit], before: &mut Vec<Edit>, is_same: &dyn Fn(&[Edit]) -> bool) {
        let start = before.len();
        before.extend(edits.iter().cloned());
        if edits.is_empty() || is_same(before) {
            return;
        }
        before.truncate(start);
        if edits.len() > 1 {
            let (first, second) = edits.split_at(edits.len() / 2);
            within(first, before, is_same);
            within(second, before, is_same);
        }
    }
    let mut harmless = Vec::new();
    within(edits, &mut harmless, is_same);
    harmless
}

/// Returns the data of each choice of branches; `None` if one is not YAML.
fn data(view: &View) -> Option<Vec<Value>> {
    if view.error().is_some() {
        return None;
    }
    (0..view.variants()).map(|variant| brine_yaml::load(&view.skeleton(variant, false).text).ok()).collect()
}

/// Returns the changes of whitespace, in order.
fn edits(text: &str) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let (mut start, mut blank, mut is_first) = (0, 0, true);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r', ' ', '\t']);
        let end = line.trim_end_matches(['\n', '\r']).len();
        if bare.is_empty() {
            blank += 1;
            if is_first || blank > 1 {
                edits.push((start..start + line.len(), ""));
            } else if end > 0 {
                edits.push((start..start + end, ""));
            }
        } else {
            (blank, is_first) = (0, false);
            edits.extend(gaps(bare).into_iter().map(|gap| (start + gap.start..start + gap.end, " ")));
            if bare.len() < end {
                edits.push((start + bare.len()..start + end, ""));
            }
        }
        start += line.len();
    }
    // Empty lines at the end.
    let bare = text.trim_end_matches(['\n', '\r', ' ', '\t']).len();
    if !text.is_empty() && bare > 0 {
        edits.retain(|(span, _)| span.start < bare);
        if &text[bare..] != "\n" {
            edits.push((bare..text.len(), "\n"));
        }
    }
    edits
}

/// Returns the ranges of several blanks after the dash of an item and after the colon of a key.
fn gaps(line: &str) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let indent = line.len() - line.trim_start().len();
    let mut at = indent;
    if line[at..].starts_with("- ") {
        let rest = line[at + 1..].trim_start();
        let item = line.len() - rest.len();
        // A mapping in the item is aligned with its first key.
        if item > at + 2 && !rest.contains(": ") && !rest.ends_with(':') {
            gaps.push(at + 1..item);
        }
        at = item;
    }
    let key =
        line[at..].find(|c: char| !(c.is_alphanumeric() || "._-/".contains(c))).map_or(line.len(), |end| at + end);
    if key > at && line[key..].starts_with(":  ") {
        let rest = line[key + 1..].trim_start();
        if !rest.is_empty() && !rest.starts_with('#') {
            gaps.push(key + 1..line.len() - rest.len());
        }
    }
    gaps
}

fn apply(text: &str, edits: &[Edit]) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (span, new) in edits {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        out.push_str(new);
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_renderers_are_left_alone() {
        assert_eq!(format("#!py\ndef run():  \n    return {}\n"), None);
    }

    #[test]
    fn whitespace_changes_and_data_stay() {
        for (text, expected) in [
            ("a:\n  b: 1", "a:\n  b: 1\n"),
            ("a:\n  -   b\n  - c:   d  # e\n", "a:\n  - b\n  - c: d  # e\n"),
            ("a: 'x  \n\n\n  y'  \n", "a: 'x\n\n\n  y'\n"),
            ("{% if x  %}\na:  1\n\n\n{% endif %}   \n\n\n", "{% if x  %}\na: 1\n\n{% endif %}\n"),
            (
                "{% macro m() %}\nb:   1   \n{% endmacro %}\na: 1\n",
                "{% macro m() %}\nb:   1   \n{% endmacro %}\na: 1\n",
            ),
            ("a: |\n  x\n\n\n  y\nb: 1\n", "a: |\n  x\n\n\n  y\nb: 1\n"),
            ("a:   {{  b  }}  \n", "a: {{  b  }}\n"),
        ] {
            assert_eq!(format(text).as_deref(), Some(expected), "{text}");
            assert_eq!(format(expected).as_deref(), Some(expected), "{text}");
        }
    }
}

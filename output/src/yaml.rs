//! Formats values as YAML, as Salt's outputter does.

use brine_value::Value;
use brine_yaml::{Style, dump};

use super::Indent;
use crate::escape::escape_control;

/// Formats a value. A negative indent selects the flow style on one line.
pub fn render(value: &Value, indent: Indent) -> String {
    // YAML's own escapes cover all unsafe characters except the bidirectional overrides.
    escape_control(&dump(value, style(indent))).into_owned()
}

fn style(indent: Indent) -> Style {
    match indent {
        Indent::Columns(columns) if columns < 0 => Style::FLOW,
        // As in PyYAML, an indent outside of 2 to 9 columns falls back to 2.
        Indent::Columns(columns @ 2..=9) => Style { indent: columns as u8, ..Style::BLOCK },
        _ => Style::BLOCK,
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn indentation_is_two_or_as_given() {
        let value = Value::from(map! {"b" => map!{"d" => list![1, map!{"x" => 1}]}, "a" => "ü"});
        for (indent, text) in [
            (Indent::Default, "a: ü\nb:\n  d:\n  - 1\n  - x: 1\n"),
            (Indent::Pretty, "a: ü\nb:\n  d:\n  - 1\n  - x: 1\n"),
            (Indent::Columns(4), "a: ü\nb:\n    d:\n    - 1\n    -   x: 1\n"),
            (Indent::Columns(1), "a: ü\nb:\n  d:\n  - 1\n  - x: 1\n"),
            (Indent::Columns(-1), "{a: ü, b: {d: [1, {x: 1}]}}\n"),
        ] {
            assert_eq!(render(&value, indent), text, "{indent:?}");
        }
    }
}

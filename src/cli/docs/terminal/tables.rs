//! Tables: in columns if they fit, or else a paragraph a row.

use super::super::tables::{cells, is_rule};
use super::inline::{lines, plain, words};
use super::{EMPHASIS, Style};

/// The blanks between two columns.
const GAP: usize = 2;

/// Returns a table as it is shown. The links that it has are added to a list.
pub(super) fn show(rows: &[&str], style: Style<'_>, indent: usize, links: &mut Vec<String>) -> String {
    let rows: Vec<Vec<String>> = rows.iter().filter_map(|row| cells(row)).filter(|row| !is_rule(row)).collect();
    let [head, rows @ ..] = rows.as_slice() else { return String::new() };
    let render_cell = |cell: &String, links: &mut Vec<String>| {
        lines(&words(cell, links).0, Style { width: usize::MAX, ..style }, 0).concat()
    };
    let plainly: Vec<Vec<usize>> =
        rows.iter().chain([head]).map(|row| row.iter().map(|cell| width(cell, style)).collect()).collect();
    let columns = head.len();
    let widths: Vec<usize> =
        (0..columns).map(|at| plainly.iter().filter_map(|row| row.get(at)).copied().max().unwrap_or(0)).collect();
    let margin = " ".repeat(indent);
    let mut text = String::new();
    let all: usize = widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1);
    if all + indent <= style.width {
        let padded = |cells: Vec<String>, lengths: Vec<usize>| {
            let parts = cells.iter().zip(lengths).zip(&widths);
            let line = parts
                .fold(String::new(), |line, ((cell, length), width)| line + cell + &" ".repeat(width - length + GAP));
            format!("{margin}{}\n", line.trim_end())
        };
        let names: Vec<String> = head.iter().map(|name| plain(name)).collect();
        if names.iter().any(|name| !name.is_empty()) {
            let lengths = names.iter().map(|name| name.chars().count()).collect();
            let painted = names.iter().map(|name| style.colours.paint(EMPHASIS, name)).collect();
            text.push_str(&padded(painted, lengths));
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&padded(rules, widths.clone()));
        }
        for row in rows {
            let lengths = row.iter().map(|cell| width(cell, style)).collect();
            let cells = row.iter().map(|cell| render_cell(cell, links)).collect();
            text.push_str(&padded(cells, lengths));
        }
        return text;
    }
    for row in rows {
        text.push_str(&paragraph(head, row, style, indent, links));
    }
    text
}

/// Returns the number of columns that a cell takes.
fn width(cell: &str, style: Style<'_>) -> usize {
    let plain = Style { colours: crate::ui::Colours::OFF, width: usize::MAX, ..style };
    let marks = if style.colours == plain.colours { 0 } else { super::super::tables::codes(cell).count() * 2 };
    lines(&words(cell, &mut Vec::new()).0, plain, 0).concat().chars().count() - marks
}

/// Returns a row whose table does not fit: the first cell, the short ones with the names of their columns, and the last
/// one below.
fn paragraph(head: &[String], row: &[String], style: Style<'_>, indent: usize, links: &mut Vec<String>) -> String {
    let [first, middle @ .., last] = row else { return row.first().map_or_else(String::new, |one| format!("{one}\n")) };
    let named = middle.iter().zip(head.iter().skip(1)).filter(|(cell, _)| !cell.is_empty());
    let named: Vec<String> = named.map(|(cell, name)| format!("{name}: {cell}")).collect();
    let notes = if named.is_empty() { String::new() } else { format!("  ({})", named.join("; ")) };
    let mut text = String::new();
    let mut add = |cell: &str, indent: usize| {
        for line in lines(&words(cell, links).0, style, indent) {
            text.push_str(&format!("{}{line}\n", " ".repeat(indent)));
        }
    };
    add(&format!("{first}{notes}"), indent);
    add(last, indent + 4);
    text.push('\n');
    text
}

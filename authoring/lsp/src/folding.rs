//! The ranges of lines that editors fold: entries of the data, blocks of Jinja, comments.

use std::collections::BTreeSet;

use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;
use lsp_types::{FoldingRange, FoldingRangeKind};

use crate::workspace::Here;

/// The largest number of ranges.
const MAX_RANGES: usize = 5000;

/// Returns the ranges of a file.
pub(crate) fn of(here: &Here<'_>) -> Vec<FoldingRange> {
    let mut ranges = BTreeSet::new();
    for document in &here.file.documents {
        entries(here, document, &mut ranges);
    }
    for block in here.file.view.iter().flat_map(brine_jinja::view::View::blocks) {
        // The closing tag stays visible.
        let (first, last) = (line(here, block.start), line(here, block.end));
        ranges.insert((first, last.saturating_sub(1), false));
    }
    comments(here, &mut ranges);
    let ranges = ranges.into_iter().filter(|(first, last, _)| last > first).take(MAX_RANGES);
    let range = |(first, last, is_comment)| FoldingRange {
        start_line: first,
        end_line: last,
        kind: Some(if is_comment { FoldingRangeKind::Comment } else { FoldingRangeKind::Region }),
        ..FoldingRange::default()
    };
    ranges.map(range).collect()
}

/// Returns the line of a byte, counted from 0.
fn line(here: &Here<'_>, at: usize) -> u32 {
    u32::try_from(here.file.position(at).line.saturating_sub(1)).unwrap_or(u32::MAX)
}

fn entries(here: &Here<'_>, node: &SourceNode, ranges: &mut BTreeSet<(u32, u32, bool)>) {
    match &node.content {
        Content::Scalar { .. } => {}
        Content::List(items) => items.iter().for_each(|item| entries(here, item, ranges)),
        Content::Map(pairs) => {
            for (key, value) in pairs.iter().filter(|(key, value)| !key.is_repeated && !value.is_repeated) {
                // A block scalar ends behind its last line.
                let end = value.span.end.max(key.span.end);
                ranges.insert((line(here, key.span.start), line(here, end), false));
                entries(here, value, ranges);
            }
        }
    }
}

/// Adds runs of lines that are comments.
fn comments(here: &Here<'_>, ranges: &mut BTreeSet<(u32, u32, bool)>) {
    let mut start = None;
    let lines = here.file.text.lines().chain(Some(""));
    for (number, line) in lines.enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if line.trim_start().starts_with('#') {
            start.get_or_insert(number);
        } else if let Some(first) = start.take() {
            ranges.insert((first, number.saturating_sub(1), true));
        }
    }
}

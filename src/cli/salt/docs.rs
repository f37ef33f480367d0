//! Prints the documentation of functions in Salt's format.

use brine_value::{Map, Value, map};

use super::super::common::ResultPrinter;
use crate::ui::print_plain;

/// The execution function that returns documentation.
pub(super) const FUNCTION: &str = "sys.doc";

/// Merges the documentation that a minion returned; the first text of a function is kept.
pub(super) fn gather(docs: &mut Map, returned: &Value) {
    for (fun, doc) in returned.as_map().into_iter().flatten() {
        if doc.is_truthy() {
            docs.entry(fun.clone()).or_insert_with(|| doc.clone());
        }
    }
}

/// Prints documentation sorted by function, as text or with a named outputter.
pub(super) fn show(docs: &Map, printer: &mut ResultPrinter) -> anyhow::Result<()> {
    let mut sorted: Vec<_> = docs.iter().collect();
    sorted.sort_by_key(|(fun, _)| fun.to_string());
    for (fun, doc) in sorted {
        if printer.has_outputter() {
            let fun = fun.to_string();
            printer.show(&map! {fun.as_str() => doc.clone()}.into(), "nested")?;
        } else {
            print_plain(format_args!("{fun}:\n{}\n", crate::cli::usage::docstring(&doc.to_string())));
        }
    }
    if !printer.has_outputter() {
        crate::cli::docs::point(FUNCTION, &docs.keys().map(ToString::to_string).collect::<Vec<_>>());
    }
    Ok(())
}

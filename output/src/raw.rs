//! Formats values as Python literals on one line.

use brine_value::Value;

use crate::escape::escape_control;

/// Formats a value; a string alone has no quotes.
pub fn render(value: &Value) -> String {
    escape_control(&value.to_string()).into_owned()
}

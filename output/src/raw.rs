//! Formats values as Python literals on one line.

use brine_value::Value;

use crate::escape::escape_control;

/// Formats a value. A string at the top level is not quoted.
pub fn render(value: &Value) -> String {
    escape_control(&value.to_string()).into_owned()
}

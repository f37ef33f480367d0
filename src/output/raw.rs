//! The value as Python prints it, on one line.

use brine_value::Value;

use crate::escape::escape_control;

/// The whole text of a value; text on its own stays bare.
pub fn render(value: &Value) -> String {
    escape_control(&value.to_string()).into_owned()
}

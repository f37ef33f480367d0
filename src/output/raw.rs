//! The value as Python prints it, on one line.

use brine_core::Value;

/// The whole text of a value; text on its own stays bare.
pub fn render(value: &Value) -> String {
    value.to_string()
}

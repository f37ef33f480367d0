//! `xml`: states of the texts of XML files.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, map};

/// State functions of `xml`.
pub static FUNCTIONS: Functions<StateContext> = registry!("xml", [value_present]);

/// Ensure that an element of an XML file has a text. The element must exist.
///
/// SLS Example:
///
///     /etc/app/settings.xml:
///       xml.value_present:
///         - xpath: ./server/port
///         - value: 8080
#[function]
pub fn value_present(
    context: &StateContext,
    /// Path of the file.
    name: String,
    /// XPath expression of the element, as in the execution function `xml.get_value`.
    xpath: String,
    /// The text.
    value: Value,
) -> CallResult {
    let call = |function: &str, more: Option<Value>| {
        let args = [Value::from(name.as_str()), xpath.as_str().into()].into_iter().chain(more);
        context.call.call(&format!("xml.{function}"), Args::positional(args))
    };
    let current = call("get_value", None)?;
    // An element without text is null.
    if current == false.into() {
        return Ok(StateReturn::failed(&name, format!("xpath query {xpath} not found in {name}")).into());
    }
    if current.as_str().unwrap_or_default() == value.to_string() {
        return Ok(StateReturn::ok(&name, format!("{value} is already present")).into());
    }
    let changes = map! {name.as_str() => map! {"old" => current, "new" => value.clone()}};
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("{name} will be updated")).with_changes(changes).into());
    }
    call("set_value", Some(value))?;
    Ok(StateReturn::ok(&name, format!("{name} updated")).with_changes(changes).into())
}

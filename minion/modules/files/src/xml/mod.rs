//! `xml`: texts and attributes of XML files. `document` parses and edits, `path` finds elements.

mod document;
mod path;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Map, Value};

use self::document::{Document, XmlError};
use self::path::Path;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `xml`.
pub static FUNCTIONS: Functions<Context> = registry!("xml", [get_value, set_value, get_attribute, set_attribute]);

/// Return the text of an element; False if there is no such element.
///
/// CLI Example:
///
///     salt '*' xml.get_value /etc/app.xml ".//port"
#[function]
pub fn get_value(
    context: &Context,
    /// Path of the file.
    file: String,
    /// XPath expression: names, `*`, `.`, `..` and `//`, with conditions such as `[@id='3']`, `[name]`,
    /// `[name='text']`, `[2]` and `[last()]`. A name in a namespace is `{namespace}name`.
    element: String,
) -> CallResult {
    let Some((document, index)) = find(context, &file, &element)? else { return Ok(false.into()) };
    Ok(document.text(index).into())
}

/// Set the text of an element, and return whether there is such an element. The rest of the file stays as it is.
///
/// CLI Example:
///
///     salt '*' xml.set_value /etc/app.xml ".//port" 8080
#[function]
pub fn set_value(
    context: &Context,
    /// Path of the file.
    file: String,
    /// XPath expression, as in `xml.get_value`.
    element: String,
    /// New value.
    value: Value,
) -> CallResult {
    edit(context, &file, &element, |document, index| document.with_text(index, &value.to_string()))
}

/// Return the attributes of an element; False if there is no such element.
///
/// CLI Example:
///
///     salt '*' xml.get_attribute /etc/app.xml ".//server[@id='3']"
#[function]
pub fn get_attribute(
    context: &Context,
    /// Path of the file.
    file: String,
    /// XPath expression, as in `xml.get_value`.
    element: String,
) -> CallResult {
    let Some((document, index)) = find(context, &file, &element)? else { return Ok(false.into()) };
    Ok(document.attributes(index).map(|(name, value)| (name.into(), value.into())).collect::<Map>().into())
}

/// Set an attribute of an element, and return whether there is such an element. The rest of the file stays as it is.
///
/// CLI Example:
///
///     salt '*' xml.set_attribute /etc/app.xml ".//server[@id='3']" port 8080
#[function]
pub fn set_attribute(
    context: &Context,
    /// Path of the file.
    file: String,
    /// XPath expression, as in `xml.get_value`.
    element: String,
    /// Name of the attribute; `{namespace}name` needs a prefix that the file declares.
    key: String,
    /// New value.
    value: Value,
) -> CallResult {
    edit(context, &file, &element, |document, index| document.with_attribute(index, &key, &value.to_string()))
}

/// Returns the document and the element; `None` if there is no such element.
fn find(context: &Context, file: &str, element: &str) -> Result<Option<(Document, usize)>, CallError> {
    let path = Path::parse(element).map_err(CallError::execution)?;
    let bytes = files::read(file).map_err(CallError::execution)?;
    let invalid = |error: XmlError| CallError::Execution(format!("reading {file} failed: {error}"));
    let document = Document::parse(bytes).map_err(invalid)?;
    let position = path.find(&document);
    if position.is_none() {
        tracing::error!(jid = context.job.jid, file, "Unable to find element matching {element}");
    }
    Ok(position.map(|index| (document, index)))
}

fn edit(
    context: &Context,
    file: &str,
    element: &str,
    edited: impl Fn(&Document, usize) -> Result<String, XmlError>,
) -> CallResult {
    let Some((document, index)) = find(context, file, element)? else { return Ok(false.into()) };
    let text = edited(&document, index).map_err(CallError::execution)?;
    if text != document.source() {
        files::rewrite(file, text.as_bytes(), 0o644).map_err(CallError::execution)?;
    }
    Ok(true.into())
}

//! `highstate_doc`: a document in Markdown about the states of a minion. `processor` describes a state, `templates` are
//! the texts around the descriptions.

mod processor;
pub(crate) mod state;
mod templates;
#[cfg(test)]
mod tests;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_state::Source;
use brine_text::python_regex::{Regex, Template};
use brine_value::{Map, Value, list, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `highstate_doc`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "highstate_doc",
    [
        templates::markdown_basic_jinja_template,
        templates::markdown_default_jinja_template,
        templates::markdown_full_jinja_template,
        read_file,
        render,
        process_lowstates,
        processor::processor_markdown
    ]
);

/// The built-in processor.
const PROCESSOR: &str = "highstate_doc.processor_markdown";

/// Return the content of a file; None if it cannot be read.
///
/// CLI Example:
///
///     salt '*' highstate_doc.read_file /root/README.md
#[function]
pub fn read_file(
    context: &Context,
    /// Path of the file.
    name: String,
) -> CallResult {
    match std::fs::read_to_string(&name) {
        Ok(text) => Ok(text.into()),
        Err(error) => {
            tracing::error!(jid = context.job.jid, file = name, "reading a document failed: {error}");
            Ok(Value::Nil)
        }
    }
}

/// Return a document about the states of the highstate.
///
/// The settings are keyword arguments, or in the mapping `highstate_doc.config` of the pillar or the configuration:
/// `filter_id_regex` and `filter_function_regex` (lists of regular expressions of states to leave out),
/// `replace_text_regex` (a mapping of regular expressions to their replacements, such as of passwords), `processor`
/// (a function that describes a state) and `max_render_file_size` (in bytes).
///
/// CLI Example:
///
///     salt '*' highstate_doc.render
#[function]
pub fn render(
    context: &Context,
    /// Template in Jinja; its variable `lowstates` is the list of descriptions.
    jinja_template_text: Option<String>,
    /// Function that returns the template: `highstate_doc.markdown_basic_jinja_template`,
    /// `highstate_doc.markdown_default_jinja_template`, `highstate_doc.markdown_full_jinja_template`, or one of your
    /// own.
    #[default("highstate_doc.markdown_default_jinja_template".into())]
    jinja_template_function: String,
    /// Settings over those of `highstate_doc.config` in pillar or configuration: `filter_id_regex`,
    /// `filter_function_regex`, `replace_text_regex`, `processor`, `max_render_file_size`, `note`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let settings = settings(context, &kwargs)?;
    let lowstates = described(context, &settings, &kwargs)?;
    let template = match jinja_template_text {
        Some(text) => text,
        None => context.call(&jinja_template_function, Args::keyword(kwargs.clone()))?.to_string(),
    };
    let variables = map! {"config" => settings.clone(), "lowstates" => lowstates, "kwargs" => kwargs};
    let source = Source::new(context, context.pillar());
    let rendered = source.render_template("highstate_doc", &template, &variables, "base");
    let mut text = rendered.map_err(CallError::execution)?;
    for (pattern, replacement) in settings.get("replace_text_regex").and_then(Value::as_map).into_iter().flatten() {
        let pattern = pattern.to_string();
        let regex = regex(&pattern)?;
        let replaced = Template::new(&regex, &replacement.to_string()).and_then(|with| regex.replace(&text, &with, 0));
        text = replaced.map_err(|error| CallError::Execution(format!("replacing {pattern} failed: {error}")))?;
    }
    Ok(text.into())
}

/// Return the descriptions of the states of the highstate that are not filtered out. The settings are those of
/// `highstate_doc.render`.
///
/// CLI Example:
///
///     salt '*' highstate_doc.process_lowstates
#[function]
pub fn process_lowstates(
    context: &Context,
    /// Settings over those of `highstate_doc.config` in pillar or configuration: `filter_id_regex`,
    /// `filter_function_regex`, `replace_text_regex`, `processor`, `max_render_file_size`, `note`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let settings = settings(context, &kwargs)?;
    Ok(described(context, &settings, &kwargs)?.into())
}

/// Returns the settings: defaults, those of the pillar or the configuration, and arguments.
fn settings(context: &Context, kwargs: &Map) -> Result<Map, CallError> {
    let mut settings = map! {
        "filter_id_regex" => list![".*!doc_skip"],
        "filter_function_regex" => list![],
        "replace_text_regex" => map! {},
        "processor" => PROCESSOR,
        "max_render_file_size" => 10_000,
        "note" => Value::Nil,
    };
    let configured = context.call("config.get", Args::positional(["highstate_doc.config".into()]))?;
    settings.extend(configured.as_map().cloned().unwrap_or_default());
    let overrides = kwargs.iter().filter(|(name, _)| settings.contains_key(*name));
    let overrides: Vec<(Value, Value)> = overrides.map(|(name, value)| (name.clone(), value.clone())).collect();
    settings.extend(overrides);
    Ok(settings)
}

/// Returns the descriptions of the states that are not filtered out.
fn described(context: &Context, settings: &Map, kwargs: &Map) -> Result<Vec<Value>, CallError> {
    let low = context.call("state.show_lowstate", Args::default())?;
    let failed = || {
        let message = "the states cannot be compiled: see salt-call state.show_lowstate";
        CallError::execution(message)
    };
    let filters = |name: &str| -> Result<Vec<Regex>, CallError> {
        let patterns = settings.get(name).and_then(Value::as_list).unwrap_or_default();
        patterns.iter().map(|pattern| regex(&pattern.to_string())).collect()
    };
    let (functions, ids) = (filters("filter_function_regex")?, filters("filter_id_regex")?);
    let matches =
        |filters: &[Regex], text: &str| filters.iter().any(|filter| filter.is_match_at_start(text).unwrap_or(false));
    let processor = settings.get("processor").map(ToString::to_string).unwrap_or_default();
    let mut descriptions = Vec::new();
    for chunk in low.as_list().ok_or_else(failed)? {
        let chunk = chunk.as_map().ok_or_else(failed)?;
        let field = |name: &str| chunk.get(name).map(ToString::to_string).unwrap_or_default();
        let function = format!("{}.{}", field("state"), field("fun"));
        if matches(&functions, &function) || matches(&ids, &field("__id__")) {
            continue;
        }
        let positional = vec![chunk.clone().into(), settings.clone().into()];
        descriptions.push(context.call(&processor, Args { positional, keyword: kwargs.clone() })?);
    }
    Ok(descriptions)
}

fn regex(pattern: &str) -> Result<Regex, CallError> {
    Regex::new(pattern)
        .map_err(|error| CallError::Execution(format!("the regular expression {pattern} is invalid: {error}")))
}

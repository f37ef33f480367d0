//! `debconf`: states of answers to questions of Debian packages.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value, list, map};

/// State functions of `debconf`.
pub static FUNCTIONS: Functions<StateContext> = registry!("debconf", [set, set_file]);

/// Ensure that questions of a package have these answers: by question, its type and value.
///
/// SLS Example:
///
///     postfix:
///       debconf.set:
///         - data:
///             postfix/main_mailer_type:
///               type: select
///               value: Internet Site
///             postfix/mailname:
///               type: string
///               value: mail.example.com
#[function]
pub fn set(
    context: &StateContext,
    /// Name of the package.
    name: String,
    /// Mapping of questions to a mapping with `type` and `value`.
    data: Map,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let current = context.call.call("debconf.show", Args::positional([name.as_str().into()]))?;
    let current = current.as_list().unwrap_or_default();
    let mut outcome = StateReturn::ok(&name, "");
    for (question, answer) in &data {
        let kind = answer.get("type").map(ToString::to_string).unwrap_or_default();
        let value = match answer.get("value") {
            Some(value) if kind == "boolean" => if value.is_truthy() { "true" } else { "false" }.to_owned(),
            value => value.map(ToString::to_string).unwrap_or_default(),
        };
        let masked_value = if kind == "password" { "(password hidden)" } else { &value };
        if current.contains(&list![question.clone(), kind.as_str(), value.as_str()]) {
            if outcome.comment.is_empty() {
                outcome.comment = "Unchanged answers: ".into();
            }
            outcome.comment = format!("{}{question} ", outcome.comment);
        } else if context.test {
            outcome.result = None;
            outcome.changes.insert(question.clone(), format!("New value: {masked_value}").into());
        } else {
            let args = [name.as_str().into(), question.clone(), kind.as_str().into(), value.as_str().into()];
            if context.call.call("debconf.set", Args::positional(args))?.is_truthy() {
                outcome.changes.insert(question.clone(), masked_value.into());
            } else {
                outcome.result = Some(false);
                outcome.comment = "Some settings failed to be applied.".into();
                outcome.changes.insert(question.clone(), "Failed to set!".into());
            }
        }
    }
    if outcome.changes.is_empty() {
        outcome.comment = "All specified answers are already set".into();
    }
    Ok(outcome.into())
}

/// Ensure that questions have the answers of a file.
///
/// SLS Example:
///
///     postfix_answers:
///       debconf.set_file:
///         - source: salt://postfix/debconf.conf
#[function]
pub fn set_file(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// URL or path of the file, with lines as `debconf-set-selections` reads them.
    source: String,
    /// Template engine that renders the file, such as `jinja`.
    template: Option<String>,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    #[keywords(further_set_file)] _kwargs: Map,
) -> CallResult {
    let template_context = context.chunk.get("context").cloned().unwrap_or_default();
    for (value, word) in [(&template_context, "Context"), (&defaults, "Defaults")] {
        if !value.is_nil() && value.as_map().is_none() {
            return Ok(StateReturn::failed(&name, format!("{word} must be formed as a dict")).into());
        }
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "Debconf selections would have been set.").into());
    }
    let mut args = map! {"path" => source, "saltenv" => &context.saltenv};
    let function = if template.is_some() { "debconf.set_template" } else { "debconf.set_file" };
    if let Some(template) = template {
        args.extend(map! {"template" => template, "context" => template_context, "defaults" => defaults});
    }
    Ok(if context.call.call(function, Args::keyword(args))?.is_truthy() {
        StateReturn::ok(&name, "Debconf selections were set.")
    } else {
        StateReturn::failed(&name, "Unable to set debconf selections from file.")
    }
    .into())
}

/// Describes the further arguments of `debconf.set_file`.
pub(crate) fn further_set_file(params: &mut ParamList) {
    params.others(Others::Variables);
    params.further("context", "a mapping", "Variables of the template.");
}

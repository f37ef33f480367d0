//! The roster `flat`: a file with the hosts by id, rendered as an SLS file.

use std::path::Path;

use brine_jinja::Host as Functions;
use brine_sls::render::{RenderContext, render_sls};
use brine_value::{Value, map};

use super::{Fields, RosterError, RosterOptions, read};

/// Returns the fields of all hosts.
pub(super) fn hosts(options: &RosterOptions, functions: &Functions) -> Result<Fields, RosterError> {
    let invalid = |reason: String| RosterError::Invalid { path: options.file.clone(), reason };
    let all = match render(options, &options.file, functions)? {
        Value::Map(all) => all,
        Value::Nil => return Ok(Fields::new()),
        other => return Err(invalid(format!("expected a mapping of ids, got {}", other.type_name()))),
    };
    let one = |(id, fields): (Value, Value)| match fields {
        Value::Map(fields) => Ok((id.to_string(), fields)),
        // A string is the address alone.
        Value::Str(host) => Ok((id.to_string(), map! {"host" => host})),
        Value::Nil => Ok((id.to_string(), map! {})),
        other => Err(invalid(format!("{id}: expected a mapping, got {}", other.type_name()))),
    };
    all.into_iter().map(one).collect()
}

/// Renders a roster file.
pub(super) fn render(options: &RosterOptions, path: &Path, functions: &Functions) -> Result<Value, RosterError> {
    render_source(options, path, &read(path)?, functions)
}

/// Renders the source text of a roster file.
pub(super) fn render_source(
    options: &RosterOptions,
    path: &Path,
    source: &str,
    functions: &Functions,
) -> Result<Value, RosterError> {
    let variables = map! {"opts" => options.opts.clone(), "saltenv" => "base"};
    let name = path.display().to_string();
    let renderer = brine_config::opts::shared::renderer(&options.opts);
    let context =
        RenderContext { name: &name, saltenv: "base", renderer: &renderer, variables: &variables, host: functions };
    render_sls(source, &context).map_err(|error| {
        // Errors of Jinja show the lines around.
        let line = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
        RosterError::Invalid { path: path.to_owned(), reason: format!("{line}{}", error.message()) }
    })
}

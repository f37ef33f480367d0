//! `jinja`: variables and data defined by templates under `salt://`.

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_sls::render::sls_variables;
use brine_state::Source;
use brine_value::Value;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `jinja`.
pub static FUNCTIONS: Functions<Context> = registry!("jinja", [load_map, import_yaml, import_json]);

/// Return the value of a variable of a template.
///
/// CLI Example:
///
///     salt '*' jinja.load_map myformula/map.jinja mapdata
#[function]
pub fn load_map(
    context: &Context,
    /// Path below `salt://`.
    path: String,
    /// Variable of the file that is returned.
    value: String,
) -> CallResult {
    rendered(
        context,
        &path,
        &format!("{{% from \"{path}\" import {value} with context %}}\n{{{{ {value} | tojson }}}}\n"),
    )
}

/// Render a file, parse it as YAML, and return its data.
///
/// CLI Example:
///
///     salt '*' jinja.import_yaml myformula/foo.yaml
#[function]
pub fn import_yaml(
    context: &Context,
    /// Path below `salt://`.
    path: String,
) -> CallResult {
    rendered(context, &path, &format!("{{% import_yaml \"{path}\" as imported %}}\n{{{{ imported | tojson }}}}\n"))
}

/// Render a file, parse it as JSON, and return its data.
///
/// CLI Example:
///
///     salt '*' jinja.import_json myformula/foo.json
#[function]
pub fn import_json(
    context: &Context,
    /// Path below `salt://`.
    path: String,
) -> CallResult {
    rendered(context, &path, &format!("{{% import_json \"{path}\" as imported %}}\n{{{{ imported | tojson }}}}\n"))
}

/// Returns the data of a template that is rendered like an SLS file; `tpldir` and the like are those of the imported
/// file.
fn rendered(context: &Context, path: &str, template: &str) -> Result<Value, CallError> {
    let source = Source::new(context, context.pillar());
    let named = sls_variables("", path.strip_prefix("salt://").unwrap_or(path));
    let text = source.render_template("template", template, &named, "base").map_err(CallError::execution)?;
    brine_yaml::load(&text).map_err(CallError::execution)
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::{list, map};

    use crate::testing;

    #[test]
    fn variables_and_data_are_returned() {
        let files = [
            ("f/map.jinja", "{% set m = {'id': grains.os, 'l': [1, 2.5, none]} %}"),
            ("f/d.yaml", "a: {{ 1 + 1 }}\n"),
            (
                "mm/sub/map.jinja",
                "{% set root = tpldir.split('/')[0] %}{% import_yaml root ~ '/d.yaml' as mm %}\
                 {% set where = [tplfile, tpldir, tpldot] %}",
            ),
            ("mm/d.yaml", "b: 3\n"),
            ("f/d.json", "{\"a\": []}"),
        ];
        let context = testing::context(&files);
        for (fun, args, expected) in [
            ("load_map", list!["f/map.jinja", "m"], map! {"id" => "Debian", "l" => list![1, 2.5, ()]}),
            ("import_yaml", list!["f/d.yaml"], map! {"a" => 2}),
            ("load_map", list!["mm/sub/map.jinja", "mm"], map! {"b" => 3}),
            ("import_json", list!["f/d.json"], map! {"a" => list![]}),
        ] {
            let called = Args::positional(args.as_list().unwrap().iter().cloned());
            assert_eq!(context.call(&format!("jinja.{fun}"), called), Ok(expected.into()), "{fun} {args}");
        }
        let missing = Args::positional(["f/map.jinja".into(), "nope".into()]);
        let error = context.call("jinja.load_map", missing).unwrap_err().to_string();
        assert!(error.contains("does not export the requested name 'nope'"), "{error}");
    }
}

//! `slsutil`: merges, serializes and reads data, for authors of SLS files.

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, json, merge_deep};
use brine_yaml::Style;

mod banner;

use banner::Banner;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `slsutil`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "slsutil",
    [
        merge,
        merge_all,
        update,
        serialize,
        deserialize,
        boolstr,
        file_exists,
        dir_exists,
        path_exists,
        findup,
        banner,
        renderer
    ]
);

/// Merge a mapping into another and return the result. Strategies: smart and recurse (recursive), overwrite
/// (top-level keys), list (values collected in lists). `renderer` is without effect: no strategy depends on it.
///
/// CLI Example:
///
///     salt '*' slsutil.merge '{foo: Foo}' '{bar: Bar}'
#[function]
pub fn merge(
    _context: &Context,
    /// First object.
    obj_a: Value,
    /// Second object, which takes precedence.
    obj_b: Value,
    /// How mappings are merged: `smart`, `aggregate`, `list`, `none`, `overwrite` or `recurse`.
    #[default("smart".into())]
    strategy: String,
    /// Without effect: no strategy depends on it.
    #[default("yaml".into())]
    renderer: String,
    /// Whether lists are joined instead of replaced.
    #[default(false)]
    merge_lists: bool,
) -> CallResult {
    // Salt's strategies only use the renderer for a kind of YAML that Brine does not support.
    _ = renderer;
    let (Value::Map(mut into), Value::Map(from)) = (obj_a, obj_b.clone()) else { return Ok(obj_b) };
    match strategy.as_str() {
        "smart" | "recurse" => merge_deep(&mut into, &from, merge_lists),
        "none" => merge_deep(&mut into, &from, false),
        // Mappings within are merged only if marked by `!aggregate`; marks do not outlast the reading of a text.
        "overwrite" | "aggregate" => into.extend(from),
        // As in Salt, keys of the second object alone are left out.
        "list" => {
            for (key, value) in from {
                if let Some(entry) = into.get_mut(&key) {
                    *entry = Value::List(vec![std::mem::take(entry), value]);
                }
            }
        }
        other => return Err(CallError::Execution(format!("Unknown merging strategy '{other}'"))),
    }
    Ok(into.into())
}

/// Merge several mappings in sequence.
///
/// CLI Example:
///
///     salt '*' slsutil.merge_all '[{foo: Foo}, {foo: Bar}]'
#[function]
pub fn merge_all(
    context: &Context,
    /// Objects to merge, as a list.
    lst: Vec<Value>,
    /// How mappings are merged: `smart`, `aggregate`, `list`, `none`, `overwrite` or `recurse`.
    #[default("smart".into())]
    strategy: String,
    /// As in `slsutil.merge`.
    #[default("yaml".into())]
    renderer: String,
    /// Whether lists are joined instead of replaced.
    #[default(false)]
    merge_lists: bool,
) -> CallResult {
    lst.into_iter()
        .try_fold(Value::map(), |all, more| merge(context, all, more, strategy.clone(), renderer.clone(), merge_lists))
}

/// Merge a mapping into another recursively.
///
/// CLI Example:
///
///     salt '*' slsutil.update '{foo: Foo}' '{bar: Bar}'
#[function]
pub fn update(
    _context: &Context,
    /// Mapping to change.
    dest: Map,
    /// Mapping of new values.
    upd: Map,
    /// Whether mappings within are merged, too.
    #[default(true)]
    recursive_update: bool,
    /// Whether lists are joined instead of replaced.
    #[default(false)]
    merge_lists: bool,
) -> CallResult {
    let mut dest = dest;
    if recursive_update {
        merge_deep(&mut dest, &upd, merge_lists);
    } else {
        dest.extend(upd);
    }
    Ok(dest.into())
}

/// Serialize data as json, yaml, toml, python or by a custom serializer.
///
/// CLI Example:
///
///     salt '*' slsutil.serialize 'json' obj="{'foo': 'Foo!'}"
#[function]
pub fn serialize(
    context: &Context,
    /// Name of the serializer, such as `json`.
    serializer: String,
    /// Object to serialize.
    obj: Value,
    /// Options of the serializer: `indent` of json, `default_flow_style` and `allow_unicode` of yaml; all of them for
    /// one of your own.
    #[keywords]
    mod_kwargs: Map,
) -> CallResult {
    let is_built_in = matches!(serializer.as_str(), "json" | "yaml" | "toml" | "python");
    let (own, options) = (&context.minion.custom, || mod_kwargs.clone());
    if let Some(serialized) = own.serialize(context, &serializer, is_built_in, obj.clone(), options()) {
        return serialized.map(|serialized| serialized.content);
    }
    match serializer.as_str() {
        "json" => match mod_kwargs.get("indent").and_then(Value::as_i64) {
            Some(indent) => Ok(json::to_json_pretty(&obj, indent.clamp(0, 16) as usize).into()),
            None => Ok(json::to_json(&obj).into()),
        },
        "yaml" => {
            let style = match mod_kwargs.get("default_flow_style").and_then(Value::as_bool) {
                Some(false) => Style::BLOCK,
                Some(true) => Style::FLOW,
                None => Style::LEAVES,
            };
            let unicode = mod_kwargs.get("allow_unicode").is_some_and(Value::is_truthy);
            let style = Style { ascii: !unicode, ..style };
            Ok(brine_yaml::dump(&obj, style).trim_end().into())
        }
        "python" => Ok(brine_value::python::repr(&obj).into()),
        "toml" => brine_sls::toml::dump(&obj).map(Value::from).map_err(CallError::execution),
        other => Err(unknown(other)),
    }
}

/// Deserialize json, yaml, toml or the format of a custom serializer.
///
/// CLI Example:
///
///     salt '*' slsutil.deserialize 'json' '{"foo": "Foo!"}'
#[function]
pub fn deserialize(
    context: &Context,
    /// Name of the serializer, such as `json`.
    serializer: String,
    /// Text to deserialize.
    stream_or_string: Value,
    /// Options for a serializer of your own; the built-in ones use none.
    #[keywords]
    mod_kwargs: Map,
) -> CallResult {
    let is_built_in = matches!(serializer.as_str(), "json" | "yaml" | "toml");
    let own = &context.minion.custom;
    if let Some(read) = own.deserialize(context, &serializer, is_built_in, stream_or_string.clone(), mod_kwargs) {
        return read;
    }
    let Value::Str(text) = stream_or_string else { return Ok(stream_or_string) };
    match serializer.as_str() {
        "json" => json::from_json(&text).map_err(CallError::execution),
        "yaml" => brine_yaml::load_data(&text).map(|data| data.value).map_err(CallError::execution),
        "toml" => brine_sls::toml::load(&text).map_err(CallError::execution),
        other => Err(unknown(other)),
    }
}

/// Return one of two strings, selected by a boolean.
///
/// CLI Example:
///
///     salt '*' slsutil.boolstr '{{ salt.pillar.get("x") }}' true=enabled false=disabled
#[function]
pub fn boolstr(
    _context: &Context,
    /// Value to check.
    value: Value,
    /// The string for a true value, and that for a false one.
    #[rest]
    args: Vec<Value>,
    /// `true` and `false`: the strings, by default `true` and `false`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let named = |name: &str, index: usize| kwargs.get(name).or_else(|| args.get(index)).cloned();
    let chosen = if value.is_truthy() { named("true", 0) } else { named("false", 1) };
    Ok(chosen.unwrap_or_else(|| if value.is_truthy() { "true" } else { "false" }.into()))
}

/// Return whether a file exists at a path under `salt://`.
///
/// CLI Example:
///
///     salt '*' slsutil.file_exists nginx/defaults.yaml
#[function]
pub fn file_exists(
    context: &Context,
    /// Path below `salt://`.
    path: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    Ok(file_tree(context, &saltenv)?.files.contains(&below(&path)).into())
}

/// Return whether a directory exists at a path under `salt://`.
///
/// CLI Example:
///
///     salt '*' slsutil.dir_exists nginx/files
#[function]
pub fn dir_exists(
    context: &Context,
    /// Path below `salt://`.
    path: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    Ok(file_tree(context, &saltenv)?.directories.contains(&below(&path)).into())
}

/// Return whether a file or a directory exists at a path under `salt://`.
///
/// CLI Example:
///
///     salt '*' slsutil.path_exists nginx/defaults.yaml
#[function]
pub fn path_exists(
    context: &Context,
    /// Path below `salt://`.
    path: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    Ok(file_tree(context, &saltenv)?.has(&below(&path)).into())
}

/// Return the path of the first of these files or directories that exists in a directory under `salt://`, or in its
/// closest parent.
///
/// CLI Example:
///
///     salt '*' slsutil.findup formulas/shared/nginx map.jinja
#[function]
pub fn findup(
    context: &Context,
    /// Path below `salt://` to start from.
    #[required]
    startpath: Option<String>,
    /// Name of the file, or list of names.
    filenames: Value,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    let invocation = |message: String| CallError::Invocation { function: "slsutil.findup".into(), message };
    let names = match filenames {
        Value::Str(name) => vec![Value::Str(name)],
        Value::List(names) => names,
        _ => return Err(invocation("Filenames argument must be a string or list of strings".into())),
    };
    let place = file_tree(context, &saltenv)?;
    let start = startpath.unwrap_or_default();
    let mut directory: Vec<&str> = start.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if !directory.is_empty() && !place.has(&directory.join("/")) {
        return Err(invocation(format!("Starting path not found in the state tree: {}", directory.join("/"))));
    }
    loop {
        let paths = names.iter().map(|name| {
            directory.iter().map(ToString::to_string).chain([name.to_string()]).collect::<Vec<_>>().join("/")
        });
        if let Some(path) = { paths }.find(|path| place.has(path)) {
            return Ok(path.into());
        }
        if directory.pop().is_none() {
            return Err(CallError::Execution("File pattern(s) not found in path ancestry".into()));
        }
    }
}

/// The arguments of `slsutil.banner`.
#[derive(Args)]
pub struct BannerArgs {
    /// Width in characters.
    #[default(72)]
    width: usize,
    /// Text that starts each line.
    #[default("#".into())]
    commentchar: String,
    /// Character of the border.
    #[default("#".into())]
    borderchar: String,
    /// Line above the box.
    blockstart: Option<String>,
    /// Line below the box.
    blockend: Option<String>,
    /// Title within the box.
    title: Option<String>,
    /// Text within the box.
    text: Option<String>,
    /// Whether a newline follows.
    #[default(false)]
    newline: bool,
}

/// Return a comment box for the top of a managed file, with a title and a text.
///
/// CLI Example:
///
///     salt '*' slsutil.banner commentchar='//' borderchar='*'
#[function]
pub fn banner(_context: &Context, #[args] args: BannerArgs) -> CallResult {
    let banner = Banner { width: args.width, comment: &args.commentchar, border: args.borderchar.chars().next() };
    let title = args.title.as_deref().unwrap_or(banner::TITLE);
    let text = args.text.as_deref().unwrap_or(banner::TEXT);
    let lines =
        banner.lines(title, text).ok_or_else(|| CallError::Execution("Width is too small to render banner".into()))?;
    let block: Vec<String> = args.blockstart.into_iter().chain(lines).chain(args.blockend).collect();
    Ok(format!("{}{}", block.join("\n"), if args.newline { "\n" } else { "" }).into())
}

/// Render a string or a file under `salt://` as an SLS file, and return its data.
///
/// CLI Example:
///
///     salt '*' slsutil.renderer salt://path/to/file
///     salt '*' slsutil.renderer string='Hello, {{ name }}' default_renderer=jinja name=world
#[function]
pub fn renderer(
    context: &Context,
    /// Path below `salt://`.
    path: Option<String>,
    /// Template as text.
    string: Option<String>,
    /// Renderers of a template without `#!` line.
    #[default("jinja|yaml".into())]
    default_renderer: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// Variables of the template; `context` is a mapping of further ones.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let is_set = |text: &String| !text.is_empty();
    let source = match (path.filter(is_set), string.filter(is_set)) {
        (Some(_), Some(_)) => return Err(CallError::Execution("Must not pass both path and string.".into())),
        (None, None) => return Err(CallError::Execution("Must pass path or string.".into())),
        (None, Some(text)) => text.into_bytes(),
        (Some(path), None) => {
            let content = match path.strip_prefix("salt://") {
                Some(name) => context.minion.files.read(name, &saltenv).map_err(CallError::execution)?,
                None if !path.starts_with('/') => {
                    return Err(CallError::Execution(format!("Path '{path}' is not absolute")));
                }
                None => std::fs::read(&path).ok(),
            };
            // For an empty or missing file, Salt only logs a message.
            let Some(content) = content.filter(|content| !content.is_empty()) else { return Ok(Map::new().into()) };
            content
        }
    };
    let mut variables = kwargs;
    if let Some(Value::Map(more)) = variables.get("context").cloned() {
        variables.extend(more);
    }
    let renderers = brine_state::Source::new(context, context.pillar());
    if default_renderer == "jinja" {
        let text = String::from_utf8(source).map_err(CallError::execution)?;
        return renderers
            .render_template("string", &text, &variables, &saltenv)
            .map(Value::from)
            .map_err(CallError::execution);
    }
    let pipe = format!("#!{default_renderer}\n").into_bytes();
    let source = if source.starts_with(b"#!") { source } else { [pipe, source].concat() };
    let data = renderers.render_text(&source, &variables, &saltenv).map_err(CallError::execution)?;
    // As in Salt, for an SLS file without content, too.
    Ok(if data.is_truthy() { data } else { Value::map() })
}

/// Paths under `salt://`.
struct FileTree {
    files: Vec<String>,
    directories: Vec<String>,
}

impl FileTree {
    fn has(&self, path: &str) -> bool {
        [&self.files, &self.directories].iter().any(|all| all.iter().any(|have| have == path))
    }
}

fn file_tree(context: &Context, saltenv: &str) -> Result<FileTree, CallError> {
    let files = context.minion.files.list(saltenv).map_err(CallError::execution)?;
    let directories = context.minion.files.directories(saltenv).map_err(CallError::execution)?;
    Ok(FileTree { files, directories })
}

/// Returns a path relative to `salt://`.
fn below(path: &str) -> String {
    path.trim_start_matches("salt://").trim_matches('/').to_owned()
}

fn unknown(serializer: &str) -> CallError {
    CallError::Execution(format!("Unknown serializer '{serializer}': expected json, yaml, toml or python"))
}

#[cfg(test)]
mod tests;

//! Describes a state in Markdown.

use brine_context::Context;
use brine_function::{Args, CallResult, function};
use brine_value::json::sorted;
use brine_value::{Map, Value, map};
use brine_yaml::Style;

/// Fields of a low chunk that are no arguments of the state.
const INTERNAL: [&str; 12] = [
    "__env__",
    "__id__",
    "__sls__",
    "fun",
    "name",
    "context",
    "order",
    "state",
    "require",
    "require_in",
    "watch",
    "watch_in",
];
/// Fields of `file.stats` in descriptions of files.
const STATS: [&str; 6] = ["user", "group", "mode", "uid", "gid", "size"];
/// The number of files of a directory that are described.
const MAX_FILES: usize = 10;

/// Return the description of a state, a low chunk: a mapping with the keys `vars` (the chunk), `id`, `id_full`, `state`,
/// `function`, `state_function`, `name`, and `markdown` with `requisites` and `details`.
///
/// CLI Example:
///
///     salt '*' highstate_doc.processor_markdown '{state: pkg, fun: installed, name: vim, __id__: vim}' '{}'
#[function]
pub fn processor_markdown(
    context: &Context,
    /// Low chunk of the state, as `state.show_lowstate` returns it.
    lowstate_item: Map,
    /// Settings of `highstate_doc.render`.
    config: Map,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let field = |name: &str| lowstate_item.get(name).map(ToString::to_string).unwrap_or_default();
    let state = State {
        context,
        chunk: &lowstate_item,
        id: format!("{}: {}", field("state"), field("__id__")),
        limit: config.get("max_render_file_size").and_then(Value::as_i64).and_then(|limit| limit.try_into().ok()),
    };
    let function = format!("{}.{}", field("state"), field("fun"));
    let markdown = map! {"requisites" => state.requisites(), "details" => state.details(&function)};
    Ok(map! {
        "vars" => lowstate_item.clone(),
        "state" => field("state"),
        "name" => field("name"),
        "function" => field("fun"),
        "id" => field("__id__"),
        "id_full" => state.id,
        "state_function" => function,
        "markdown" => markdown,
    }
    .into())
}

/// A state to describe.
struct State<'c> {
    context: &'c Context,
    chunk: &'c Map,
    /// The module and the id.
    id: String,
    /// The size of files to include, in bytes.
    limit: Option<u64>,
}

impl State<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.chunk.get(name).filter(|value| value.is_truthy()).map(ToString::to_string)
    }

    /// Returns the requisites as links to the descriptions of their states.
    fn requisites(&self) -> String {
        let mut text = String::new();
        for (title, name) in [
            ("run or update after changes in:\n", "watch"),
            ("after changes, run or update:\n", "watch_in"),
            ("require:\n", "require"),
            ("required in:\n", "require_in"),
        ] {
            let all = self.chunk.get(name).and_then(Value::as_list).unwrap_or_default();
            if !all.is_empty() {
                text += title;
            }
            for requisite in all {
                match requisite.as_map().and_then(|pair| pair.first()) {
                    Some((state, id)) => {
                        let name = format!("{state}: {id}");
                        text += &format!(" * [{name}](#{})\n", anchor(&name));
                    }
                    None => text += &format!(" * `{requisite}`\n"),
                }
            }
        }
        text
    }

    /// Returns the details that matter of a function, otherwise the arguments.
    fn details(&self, function: &str) -> String {
        let details = match function {
            "highstate_doc.note" => self.note(),
            "pkg.installed" => {
                let packages = self.chunk.get("pkgs").or_else(|| self.chunk.get("name")).cloned().unwrap_or_default();
                format!("\n```\ninstall: {packages}\n```\n")
            }
            "file.recurse" => self.recurse(),
            "file.blockreplace" => {
                let source = self.text("source").map(|source| format!("** source: {source}"));
                let blocks = [self.text("content"), source].into_iter().flatten();
                let blocks = blocks.map(|text| format!("ensure block of content is in file\n{}", block(&text)));
                blocks.collect::<Vec<_>>().concat()
            }
            "file.managed" => self.file(&self.text("name").unwrap_or_default()),
            _ => String::new(),
        };
        if details.is_empty() { self.arguments() } else { details }
    }

    /// Returns the arguments of the state.
    fn arguments(&self) -> String {
        let arguments = self.chunk.iter().filter(|(name, _)| !INTERNAL.contains(&&*name.to_string()));
        yaml(arguments.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn note(&self) -> String {
        let mut text = self.text("contents").map(|contents| format!("\n{contents}\n")).unwrap_or_default();
        if let Some(source) = self.text("source") {
            let content = self.context.call("cp.get_file_str", Args::positional([source.as_str().into()]));
            let content = content.ok().filter(Value::is_truthy).map(|content| content.to_string());
            text += &format!("\n{}\n", content.unwrap_or_else(|| format!("ERROR: opening {source}")));
        }
        text
    }

    /// Describes a directory, with its files if the id asks for them.
    fn recurse(&self) -> String {
        let mut text = format!("recurse copy of files\n{}", self.arguments());
        if !self.id.contains("!doc_recurse") {
            return text + " > The files are not shown: add !doc_recurse to the id of the state to show them.\n";
        }
        let args = map! {"path" => self.text("name").unwrap_or_default(), "type" => "f"};
        let result = self.context.call("file.find", Args::keyword(args)).unwrap_or_default();
        let files = result.as_list().unwrap_or_default();
        if files.len() >= MAX_FILES && !self.id.contains("!doc_recurse_force") {
            return text + " > There are many files: add !doc_recurse_force to the id of the state to show them.\n";
        }
        for file in files {
            text += &self.file(&file.to_string());
        }
        text
    }

    /// Describes a file: its attributes and content.
    fn file(&self, path: &str) -> String {
        let Ok(stats) = self.context.call("file.stats", Args::positional([path.into()])) else {
            return format!("file {path} does not exist\n");
        };
        let attributes = STATS.iter().filter_map(|name| Some(((*name).into(), stats.get(name)?.clone())));
        let mut text = format!("file stat {path}\n{}", yaml(attributes.collect()));
        let size = stats.get("size").and_then(Value::as_i64).and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
        if self.limit.is_some_and(|limit| size > limit) {
            let hint =
                format!("The file is large: set max_render_file_size of highstate_doc.config to {size} to show it.");
            return text + &block(&hint);
        }
        let content = std::fs::read_to_string(path).ok().filter(|content| !content.contains('\0'));
        text += &format!("file data {path}\n{}", block(content.as_deref().unwrap_or("[[skipped binary data]]")));
        text
    }
}

/// Returns a block of code, which its text cannot end.
fn block(text: &str) -> String {
    format!("```\n{}\n```\n", text.replace("```", "``[`][markdown parse fix]"))
}

/// Returns a block of YAML; an empty string for no data.
fn yaml(data: Map) -> String {
    if data.is_empty() {
        return String::new();
    }
    block(brine_yaml::dump(&sorted(&data.into()), Style::BLOCK).trim_end_matches('\n'))
}

/// Returns the anchor of a heading, as renderers of Markdown build it.
fn anchor(name: &str) -> String {
    name.chars().filter(|c| !"~`!@#$%^&*()+={}[]:;\"<>,.?/|'\\".contains(*c)).collect::<String>().replace(' ', "-")
}

//! Generates the reference of functions: a page a module, with every function, its arguments and an example, and an index
//! for each kind. Tests hold that the arguments are described, and that examples name their function and its arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use brine::cli::docs::functions::{
    EXECUTION, Kind, RUNNERS, STATES, WHEEL, anchor, is_unused, section, summary, unindented,
};
use brine_context::StateContext;
use brine_function::{Function, Functions, Others, Param, Registry};
use brine_state::{OWN_ARGS, is_known_argument};
use brine_value::{Map, Value};

use super::reference::{code, page, row, table};

/// The requisites of states.
const REQUISITES: [(&str, &str); 11] = [
    ("require", "States that must have succeeded before this one runs."),
    ("require_any", "States of which one must have succeeded."),
    ("watch", "As `require`; if one of them has changes, this state reacts to them: a service is restarted."),
    ("watch_any", "As `require_any`; if one of them has changes, this state reacts to them."),
    (
        "onchanges",
        "States all of which have succeeded, and one of which has changes; otherwise this state does not run.",
    ),
    ("onchanges_any", "As `onchanges`, if one of them has succeeded."),
    ("onfail", "States one of which must have failed for this one to run."),
    ("onfail_any", "As `onfail`."),
    ("onfail_all", "States all of which must have failed for this one to run."),
    ("prereq", "States before which this one runs, only if they would have changes."),
    ("listen", "States to whose changes this one reacts at the end of the run."),
];

/// Returns the generated pages: path and text.
pub fn pages() -> Vec<(String, String)> {
    let mut pages = of_kind(&EXECUTION, &brine_modules::MODULES.functions(), "");
    pages.extend(of_kind(&STATES, &brine_modules::MODULES.states(), &arguments_of_all_states()));
    pages.extend(of_kind(&RUNNERS, brine_master_runners::runner::MODULES, ""));
    pages.extend(of_kind(&WHEEL, brine_master_runners::wheel::MODULES, ""));
    pages
}

/// Returns the directories that have generated pages only.
pub fn directories() -> [String; 4] {
    [&EXECUTION, &STATES, &RUNNERS, &WHEEL].map(|kind| format!("docs/reference/{}", kind.directory))
}

fn of_kind<C>(kind: &Kind, modules: &[&'static Functions<C>], more: &str) -> Vec<(String, String)> {
    let mut by_module = BTreeMap::<&str, Vec<&Function<C>>>::new();
    for function in Registry::new(modules).iter() {
        by_module.entry(function.module).or_default().push(function);
    }
    let mut index = String::new();
    let mut pages = Vec::new();
    for (module, functions) in &by_module {
        let path = format!("{}/{module}.md", kind.directory);
        let link = |function: &&Function<C>| {
            let name = function.full_name();
            row(&[&format!("[{name}]({path}#{})", anchor(&name)), &summary(function)])
        };
        if kind.is_large {
            let names: Vec<String> = functions.iter().map(|function| code(function.name)).collect();
            index.push_str(&row(&[&format!("[{module}]({path})"), &names.join(", ")]));
        } else {
            let rows: String = functions.iter().map(link).collect();
            _ = write!(index, "## {module}\n\n{}\n", table(&["function", "description"], [rows]));
        }
        let sections: Vec<String> = functions.iter().map(|function| section(kind, function)).collect();
        let introduction = format!("{} `{module}`; [all modules](../{}.md).", kind.one, kind.directory);
        pages.push((format!("docs/reference/{path}"), page(module, &introduction, &sections.join("\n"))));
    }
    if kind.is_large {
        index = table(&["module", "functions"], [index]);
    }
    pages.push((
        format!("docs/reference/{}.md", kind.directory),
        page(kind.title, kind.about, &format!("{more}{index}")),
    ));
    pages
}

fn arguments_of_all_states() -> String {
    let own = table(&["argument", "meaning"], OWN_ARGS.iter().map(|(name, doc)| row(&[&code(name), doc])));
    let requisites = table(&["requisite", "meaning"], REQUISITES.map(|(name, doc)| row(&[&code(name), doc])));
    format!(
        "## Arguments of every state\n\nBeside its own arguments, a state has these, which the state engine reads, and \
         `names`, a list: the state runs once for each name.\n\n{own}\n## Requisites\n\nEach is a list of states, written \
         as `- pkg: nginx`; `- sls: web` names all states of an SLS.\n\n{requisites}\n"
    )
}

/// Returns the example of a state function.
fn example_of_state(function: &Function<StateContext>) -> Option<String> {
    let (_, examples) = function.about_and_examples();
    examples.strip_prefix("SLS Example").and_then(|rest| rest.split_once("\n\n")).map(|(_, text)| unindented(text))
}

fn states() -> Vec<&'static Function<StateContext>> {
    Registry::new(&brine_modules::MODULES.states()).iter().collect()
}

/// The functions without SLS files of their own: the state engine calls them for other states.
fn is_called_by_the_engine(name: &str) -> bool {
    matches!(name, "mod_watch" | "mod_beacon")
}

/// Returns the mistakes in an example: no YAML, other functions, or arguments that its functions do not know.
fn mistakes(function: &Function<StateContext>, example: &str) -> Vec<String> {
    let name = function.full_name();
    let document = match brine_yaml::load(example) {
        Ok(Value::Map(document)) => document,
        Ok(other) => return vec![format!("{name}: expected a mapping, got {}", other.type_name())],
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let registry = Registry::new(&brine_modules::MODULES.states());
    let (mut mistakes, mut named) = (Vec::new(), BTreeSet::new());
    for (id, declaration) in &document {
        let Some(declaration) = declaration.as_map() else {
            mistakes.push(format!("{name}: {id} is no mapping"));
            continue;
        };
        for (used, arguments) in declaration {
            let used = used.to_string();
            let Some(state) = registry.get(&used) else {
                mistakes.push(format!("{name}: unknown function {used}"));
                continue;
            };
            let arguments = arguments.as_list().unwrap_or_default().iter().filter_map(Value::as_map);
            let arguments: Map = arguments.flat_map(Map::clone).collect();
            for argument in arguments.keys().map(ToString::to_string) {
                let fills_template = state.others() == Some(Others::Variables) && arguments.contains_key("template");
                if argument != "names" && !fills_template && !is_known_argument(state, &argument) {
                    mistakes.push(format!("{name}: unknown argument {argument} of {used}"));
                }
            }
            let is_given = |param: &&Param| arguments.contains_key(param.name) || param.name == "name";
            for param in state.params().iter().filter(|param| param.is_required()).filter(|param| !is_given(param)) {
                mistakes.push(format!("{name}: {used} requires {}", param.name));
            }
            named.insert(used);
        }
    }
    if !named.contains(&name) && !is_called_by_the_engine(function.name) {
        mistakes.push(format!("{name}: the example does not name the function"));
    }
    mistakes
}

#[test]
fn every_state_has_an_example_of_its_function_with_known_arguments() {
    let of = |function: &&Function<StateContext>| match example_of_state(function) {
        None => vec![format!("{}: no SLS example", function.full_name())],
        Some(example) => mistakes(function, &example),
    };
    let mistakes: Vec<String> = states().iter().flat_map(of).collect();
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

/// Returns the arguments without a description, each as `function argument`. `**kwargs` of which nothing is used needs
/// none.
fn undescribed<C>(modules: &[&'static Functions<C>]) -> Vec<String> {
    let needs = |param: &&Param| param.doc.is_empty() && !is_unused(param);
    let of = |function: &'static Function<C>| {
        function.params().iter().filter(needs).map(move |param| format!("{} {}", function.full_name(), param.name))
    };
    Registry::new(modules).iter().flat_map(of).collect()
}

#[test]
fn every_argument_is_described() {
    let missing = [
        undescribed(&brine_modules::MODULES.states()),
        undescribed(&brine_modules::MODULES.functions()),
        undescribed(brine_master_runners::runner::MODULES),
        undescribed(brine_master_runners::wheel::MODULES),
    ]
    .concat();
    assert!(missing.is_empty(), "{} arguments have no description:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn directories_of_modules_have_generated_pages_only() {
    let pages: BTreeSet<String> = pages().into_iter().map(|(path, _)| path).collect();
    let root = env!("CARGO_MANIFEST_DIR");
    for directory in directories() {
        for entry in std::fs::read_dir(format!("{root}/{directory}")).unwrap() {
            let path = format!("{directory}/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(pages.contains(&path), "{path} is not generated: remove it");
        }
    }
}

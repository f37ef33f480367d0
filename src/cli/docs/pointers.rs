//! Where the documentation of tools and functions is: the lines at the end of `--help` and of `sys.doc`.

use std::io::IsTerminal;

use brine_value::Value;

use crate::ui::{print_plain_error, symptoms};

/// The pages about tools, with the names of the tools. Others are in the reference of command lines.
const PAGES: &[(&str, &str)] = &[
    ("salt", "how-to/run-a-command"),
    ("salt-api", "api"),
    ("salt-call", "reference/modules"),
    ("salt-cp", "how-to/copy-files"),
    ("salt-key", "how-to/accept-keys"),
    ("salt-master", "reference/master"),
    ("salt-minion", "reference/minion"),
    ("salt-ssh", "ssh"),
    ("salt-syndic", "syndic"),
    ("salt-run", "reference/runners"),
    ("brine swarm", "scaling"),
    ("brine backup", "backup"),
    ("brine restore", "backup"),
    ("brine doctor", "doctor"),
    ("brine test", "reference/test-files"),
    ("brine check", "check"),
    ("brine docs", "index"),
    ("brine link", "install"),
    ("brine completion", "install"),
    ("brine man", "install"),
];

/// Returns the page about a tool.
pub fn page(tool: &str) -> String {
    let own = PAGES.iter().find(|(name, _)| *name == tool).map(|(_, page)| (*page).to_owned());
    own.unwrap_or_else(|| format!("reference/command-line#{}", tool.replace(' ', "-")))
}

/// Returns the last line of the help of a tool.
pub fn more(tool: &str) -> String {
    format!("More: brine docs {}", page(tool))
}

/// Says, to somebody at a terminal, where the documentation of functions is that was printed: of one function its page,
/// of several the index. `by` is the function that printed it.
pub fn point(by: &str, names: &[String]) {
    if std::io::stdout().is_terminal()
        && let Some(line) = line(by, names)
    {
        print_plain_error(line);
    }
}

/// Returns the line that says where the documentation of functions is.
fn line(by: &str, names: &[String]) -> Option<String> {
    let (kind, index) = match by {
        "sys.state_doc" => ("state", "reference/states"),
        "doc.runner" => ("runner", "reference/runners"),
        _ => ("execution", "reference/modules"),
    };
    let name = match names {
        [] => return None,
        [name] if name.contains('.') => format!("{kind} {name}"),
        [module] => format!("module {module}"),
        _ => index.to_owned(),
    };
    Some(format!("More: brine docs {name}"))
}

/// Returns the message of a failed return that the documentation explains: its text, or one of its list.
pub fn explained(value: &Value) -> Option<&str> {
    let is_explained = |text: &&str| symptoms::section(text).is_some();
    match value {
        Value::Str(text) => Some(text.as_str()).filter(is_explained),
        Value::List(list) => list.iter().filter_map(Value::as_str).find(is_explained),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::docs::{look_up::look_up, pages::Pages};
    use crate::cli::{COMMANDS, TOOLS};

    #[test]
    fn every_page_of_a_tool_exists() {
        let pages = Pages::load().unwrap();
        for tool in TOOLS.iter().chain(COMMANDS) {
            let page = page(tool.name);
            assert!(
                look_up(&pages, &format!("page {page}")).is_ok_and(|answer| page.starts_with(&answer.page)),
                "{page}"
            );
            let help = tool.command_line().render_help().to_string();
            assert!(help.trim_end().ends_with(&format!("More: brine docs {page}")), "{}: {help}", tool.name);
        }
    }

    #[test]
    fn every_symptom_has_its_section() {
        let pages = Pages::load().unwrap();
        for (message, name) in symptoms::SYMPTOMS.iter().chain(symptoms::OPTIONS).chain(symptoms::FINDINGS) {
            let answer = look_up(&pages, name).unwrap_or_else(|_| panic!("{name} is missing"));
            let (page, anchor) = name.split_once('#').unwrap_or((name, ""));
            assert_eq!((answer.page.as_str(), answer.anchor.as_str()), (page, anchor), "{message}");
        }
        for (message, name) in symptoms::SYMPTOMS {
            assert_eq!(symptoms::section(&format!("salt: {message}")), Some(*name), "{message}");
        }
        for (kind, name) in symptoms::FINDINGS {
            assert!(brine_doctor::kinds::KINDS.iter().any(|other| other.name == *kind), "{kind} {name}");
        }
    }

    #[test]
    fn documentation_of_functions_names_their_page() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (by, functions, expected) in [
            ("sys.doc", names(&["test.ping"]), Some("More: brine docs execution test.ping")),
            ("sys.state_doc", names(&["file.managed"]), Some("More: brine docs state file.managed")),
            ("doc.runner", names(&["jobs.active"]), Some("More: brine docs runner jobs.active")),
            ("sys.state_doc", names(&["file"]), Some("More: brine docs module file")),
            ("sys.doc", names(&["test.ping", "test.echo"]), Some("More: brine docs reference/modules")),
            ("sys.doc", Vec::new(), None),
        ] {
            assert_eq!(line(by, &functions).as_deref(), expected, "{by} {functions:?}");
        }
    }
}

//! Runs the program `ipset`, and reads a set from its output.

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::{argument, program};

use super::element::Element;

/// A set.
pub(super) struct Set {
    /// Its type, such as `hash:ip`.
    pub kind: String,
    /// Its options.
    header: String,
    /// Its elements as ipset prints them.
    pub members: Vec<String>,
}

impl Set {
    /// Reads a set with its elements; `None` if it does not exist.
    pub(super) fn load(context: &Context, name: &str) -> Result<Option<Self>, CallError> {
        Ok(list(context, &["list"], name)?.and_then(|listing| Set::parse(&listing)))
    }

    fn parse(listing: &str) -> Option<Self> {
        let mut lines = listing.lines();
        let (mut kind, mut header) = (None, "");
        for line in lines.by_ref().take_while(|line| *line != "Members:") {
            match line.split_once(": ") {
                Some(("Type", value)) => kind = Some(value),
                Some(("Header", value)) => header = value,
                _ => {}
            }
        }
        Some(Set { kind: kind?.to_owned(), header: header.to_owned(), members: lines.map(str::to_owned).collect() })
    }

    /// Returns whether it was created with an option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.header.split_whitespace().any(|word| word == option)
    }

    /// Parses an element, or an entry for elements, of this set.
    pub(super) fn element(&self, text: &str) -> Element {
        Element::parse(&self.kind, text)
    }

    pub(super) fn elements(&self) -> Vec<Element> {
        self.members.iter().map(|member| self.element(member)).collect()
    }
}

/// Returns whether a set exists.
pub(super) fn exists(context: &Context, name: &str) -> Result<bool, CallError> {
    Ok(list(context, &["list", "-t"], name)?.is_some())
}

/// Returns the listing of a set; `None` if it does not exist. Other failures are errors: an unreadable set is not a
/// missing one.
fn list(context: &Context, command: &[&str], name: &str) -> Result<Option<String>, CallError> {
    let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    words.push(word("set", name)?);
    let output = run(context, &words)?;
    match output.retcode {
        0 => Ok(Some(output.stdout)),
        _ if output.stderr.contains("does not exist") => Ok(None),
        _ => Err(CallError::Execution(format!("reading the set {name} failed: {}", output.stderr))),
    }
}

/// Runs a command of ipset.
pub(super) fn run(context: &Context, words: &[String]) -> Result<Output, CallError> {
    if context.minion.programs.find("ipset").is_none() {
        return Err(CallError::Execution("program ipset not found: install ipset".into()));
    }
    let command: Vec<String> = std::iter::once("ipset".to_owned()).chain(words.iter().cloned()).collect();
    context.run_program(&program(&command, &[])).map_err(CallError::execution)
}

/// Runs a command that changes something. Returns the error output if it fails.
pub(super) fn change(context: &Context, words: &[String]) -> Result<Option<String>, CallError> {
    let output = run(context, words)?;
    if output.retcode == 0 {
        return Ok(None);
    }
    context.set_retcode(output.retcode);
    Ok(Some(match output.stderr {
        reason if reason.is_empty() => format!("ipset ended with exit status {}", output.retcode),
        reason => reason,
    }))
}

/// Checks a word of a command: ipset takes options at any place, and has no escapes for quotation marks.
pub(super) fn word(what: &str, text: &str) -> Result<String, CallError> {
    one_line(what, text)?;
    if text.contains('"') {
        let message = format!("{what} '{text}' is invalid: expected no quotation marks");
        return Err(CallError::Execution(message));
    }
    argument(text)
}

/// Checks that a text is one line: ipset lists names and comments as they are, so that further lines would be read as
/// other elements.
pub(super) fn one_line(what: &str, text: &str) -> Result<(), CallError> {
    if !text.chars().any(char::is_control) {
        return Ok(());
    }
    let text = text.escape_debug();
    Err(CallError::Execution(format!("{what} '{text}' is invalid: expected one line without control characters")))
}

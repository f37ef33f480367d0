//! Finds what a name means: a function, a row of a table, a page, a module, a tool, a heading, or a phrase of the text.

use brine_text::nearest::nearest;

use super::functions::{Kind, anchor};
use super::known::{self, Known};
use super::pages::{Page, Pages, Section, slug};
use super::tables::{cells, codes, is_rule, row, table};
use crate::cli::{COMMANDS, TOOLS};

/// The maximum number of places that a phrase lists.
const PLACES: usize = 20;
/// The number of similar names that are suggested.
const SUGGESTIONS: usize = 3;
/// The page with the help of tools.
const TOOL_PAGE: &str = "reference/command-line";
/// The indexes of functions, whose rows are no definitions.
const INDEXES: [&str; 4] = ["reference/modules", "reference/states", "reference/runners", "reference/wheel"];
/// The pages with tables that define names: the word that chooses them, whether a name alone is looked up there, and the
/// page.
const ROWS: [(&str, bool, &str); 7] = [
    ("option", true, "reference/master"),
    ("option", true, "reference/minion"),
    ("option", true, "reference/returners"),
    ("metric", true, "reference/metrics"),
    ("event", true, "reference/events"),
    ("error", true, "reference/check"),
    // Their names are those of many things.
    ("option", false, "reference/beacons"),
];

/// What is found.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text in Markdown.
    pub text: String,
    /// The name of its page on the site.
    pub page: String,
    /// The anchor on that page; empty for the page.
    pub anchor: String,
    /// Names of the other things that a name means.
    pub also: Vec<String>,
}

/// The kinds of things in the order in which they are looked up, with the words before a name that choose one.
const STAGES: [(Find, &[&str]); 7] = [
    (functions, &["state", "execution", "runner", "wheel"]),
    (rows, &["option", "metric", "event", "error"]),
    (page, &["page"]),
    (module, &["module"]),
    (tool, &["tool"]),
    (heading, &["heading"]),
    (phrase, &["text"]),
];

/// Finds a name among one kind of things; with the word that chose the kind.
type Find = fn(&Pages, &str, &str) -> Option<Answer>;

/// Finds what a name means.
///
/// # Errors
/// Nothing is found: the most similar names.
pub fn look_up(pages: &Pages, name: &str) -> Result<Answer, Vec<String>> {
    if let Some((word, rest)) = name.split_once(' ') {
        let chosen = STAGES.iter().find(|(_, words)| words.contains(&word));
        if let Some(answer) = chosen.and_then(|(find, _)| find(pages, word, rest.trim())) {
            return Ok(answer);
        }
    }
    let mut answers = STAGES.iter().enumerate().filter_map(|(at, (find, _))| Some((at, find(pages, "", name)?)));
    let Some((at, mut answer)) = answers.next() else { return Err(similar(pages, name)) };
    // Headings and phrases are no names.
    let others = STAGES[at + 1..].iter().take(4_usize.saturating_sub(at));
    let is_other = |(find, _): &&(Find, &[&str])| find(pages, "", name).is_some();
    answer.also.extend(others.filter(is_other).map(|(_, words)| format!("{} {name}", words[0])));
    Ok(answer)
}

fn functions(_: &Pages, kind: &str, name: &str) -> Option<Answer> {
    let is_kind = |of: &Kind| kind.is_empty() || word_of(of) == kind;
    let all = known::all();
    let functions: Vec<&Known> =
        all.iter().filter(|function| function.name == name && is_kind(function.kind)).collect();
    let first = functions.first()?;
    let titled = |function: &&Known| match function.section().split_once('\n') {
        Some((_, text)) => format!("# {} ({})\n{text}", function.name, what(function.kind)),
        None => String::new(),
    };
    Some(Answer {
        text: functions.iter().map(titled).collect::<Vec<_>>().join("\n"),
        page: format!("reference/{}/{}", first.kind.directory, first.module),
        anchor: anchor(name),
        also: Vec::new(),
    })
}

/// Returns the word that chooses a kind of functions.
fn word_of(kind: &Kind) -> &'static str {
    match kind.directory {
        "states" => "state",
        "runners" => "runner",
        "wheel" => "wheel",
        _ => "execution",
    }
}

fn what(kind: &Kind) -> &'static str {
    match word_of(kind) {
        "state" => "state function",
        "runner" => "runner function",
        "wheel" => "wheel function",
        _ => "execution function",
    }
}

fn rows(pages: &Pages, kind: &str, name: &str) -> Option<Answer> {
    let searched = ROWS.iter().filter(|(of, ..)| kind.is_empty() || *of == kind);
    let searched = searched.filter(|(_, is_named_alone, _)| *is_named_alone || !kind.is_empty());
    let mut answer: Option<Answer> = None;
    for page in searched.filter_map(|(.., page)| pages.get(page)) {
        let rows = rows_of(page, name);
        if rows.is_empty() {
            continue;
        }
        let text = format!("# {name} ({})\n\n{}", page.title, rows.join("\n"));
        match &mut answer {
            Some(answer) => answer.text.push_str(&format!("\n{text}")),
            None => answer = Some(Answer { text, page: page.name.clone(), anchor: String::new(), also: Vec::new() }),
        }
    }
    answer
}

/// Returns the rows of a page whose first cell has a name, each as a table.
fn rows_of(page: &Page, name: &str) -> Vec<String> {
    let (mut head, mut rows) = (Vec::new(), Vec::new());
    for line in page.text.lines() {
        let Some(cells) = cells(line) else {
            head.clear();
            continue;
        };
        if head.is_empty() {
            head = cells;
            continue;
        }
        let is_named = cells.first().is_some_and(|first| codes(first).any(|code| is_tag(code, name)));
        if is_named && !is_rule(&cells) {
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            rows.push(table(&head, [row(&cells)]));
        }
    }
    rows
}

/// Whether a name is this one, or an event tag in which `<...>` stands for any part.
fn is_tag(pattern: &str, name: &str) -> bool {
    if pattern == name {
        return true;
    }
    let (mut patterns, mut parts) = (pattern.split('/'), name.split('/'));
    let is_same = |(pattern, part): (&str, &str)| pattern == part || (pattern.starts_with('<') && !part.is_empty());
    pattern.contains('<')
        && name.contains('/')
        && patterns.by_ref().zip(parts.by_ref()).all(is_same)
        && pattern.split('/').count() == name.split('/').count()
}

fn page(pages: &Pages, _: &str, name: &str) -> Option<Answer> {
    let (path, at) = name.split_once('#').unwrap_or((name, ""));
    let path = path.trim_start_matches("docs/");
    let path = path.strip_suffix(".md").or_else(|| path.strip_suffix(".html")).unwrap_or(path);
    let base = |page: &&Page| page.name.rsplit('/').next() == Some(path);
    let titled = |page: &&Page| page.title.eq_ignore_ascii_case(path);
    let page = pages.get(path);
    let page = page.or_else(|| pages.list.iter().find(base)).or_else(|| pages.list.iter().find(titled))?;
    let text = if at.is_empty() { page.text.as_str() } else { page.section(at)?.text };
    Some(Answer { text: text.to_owned(), page: page.name.clone(), anchor: at.to_owned(), also: Vec::new() })
}

fn module(_: &Pages, _: &str, name: &str) -> Option<Answer> {
    let all = known::all();
    let functions: Vec<&Known> = all.iter().filter(|function| function.module == name).collect();
    let first = functions.first()?;
    let mut text = format!("# {name}\n\n");
    for group in functions.chunk_by(|a, b| std::ptr::eq(a.kind, b.kind)) {
        let rows = group.iter().map(|function| row(&[&format!("`{}`", function.name), &function.summary()]));
        let title = group.first().map_or("", |function| function.kind.title);
        text.push_str(&format!("## {title}\n\n{}\n", table(&["function", "description"], rows)));
    }
    let page = format!("reference/{}/{name}", first.kind.directory);
    Some(Answer { text, page, anchor: String::new(), also: Vec::new() })
}

fn tool(_: &Pages, _: &str, name: &str) -> Option<Answer> {
    let (text, command) = if name == "brine" {
        (crate::cli::help(), "brine".to_owned())
    } else {
        let is_named = |tool: &&crate::cli::Tool| tool.name == name || tool.command == name;
        let tool = TOOLS.iter().chain(COMMANDS).find(is_named)?;
        (tool.command_line().render_help().to_string(), format!("brine {}", tool.command))
    };
    let text = format!("# {name}\n\n```text\n{}\n```\n", text.trim_end());
    Some(Answer { text, page: TOOL_PAGE.into(), anchor: slug(&command), also: Vec::new() })
}

fn heading(pages: &Pages, _: &str, name: &str) -> Option<Answer> {
    let mut answer: Option<Answer> = None;
    for page in &pages.list {
        let is_named = |section: &Section<'_>| {
            section.heading.eq_ignore_ascii_case(name) || slug(section.heading) == name.to_lowercase()
        };
        for section in page.sections().into_iter().filter(is_named) {
            let (page, anchor) = (page.name.clone(), slug(section.heading));
            match &mut answer {
                Some(first) => first.also.push(format!("{page}#{anchor}")),
                None => answer = Some(Answer { text: section.text.to_owned(), page, anchor, also: Vec::new() }),
            }
        }
    }
    answer
}

fn phrase(pages: &Pages, _: &str, name: &str) -> Option<Answer> {
    let phrase = normal(name);
    if phrase.is_empty() {
        return None;
    }
    let mut places = Vec::new();
    for page in pages.list.iter().filter(|page| !INDEXES.contains(&page.name.as_str())) {
        let sections = page.sections();
        for (at, section) in sections.iter().enumerate() {
            // The sections below have a text of their own.
            let inner = sections.get(at + 1).and_then(|next| offset(section.text, next.text));
            let own = &section.text[..inner.unwrap_or(section.text.len())];
            if normal(own).contains(&phrase) {
                places.push((page, *section));
            }
        }
    }
    let functions: Vec<Known> = known::all()
        .into_iter()
        .filter(|function| normal(&function.summary()).contains(&phrase))
        .take(PLACES)
        .collect();
    if let ([(page, section)], []) = (places.as_slice(), functions.as_slice()) {
        let text = section.text.to_owned();
        return Some(Answer { text, page: page.name.clone(), anchor: slug(section.heading), also: Vec::new() });
    }
    let (first_page, anchor) = match (places.first(), functions.first()) {
        (Some((page, section)), _) => (page.name.clone(), slug(section.heading)),
        (None, Some(function)) => {
            (format!("reference/{}/{}", function.kind.directory, function.module), anchor(&function.name))
        }
        (None, None) => return None,
    };
    let rows = places.iter().take(PLACES).map(|(page, section)| {
        let place = if section.heading == page.title {
            page.name.clone()
        } else {
            format!("{}#{}", page.name, slug(section.heading))
        };
        row(&[&format!("`{place}`"), section.heading])
    });
    let mut text = format!("# Places with '{name}'\n\n{}", table(&["page", "heading"], rows));
    if places.len() > PLACES {
        text.push_str(&format!("\nAnd {} more.\n", places.len() - PLACES));
    }
    if !functions.is_empty() {
        let rows = functions
            .iter()
            .map(|function| row(&[&format!("`{} {}`", word_of(function.kind), function.name), &function.summary()]));
        text.push_str(&format!("\n{}", table(&["function", "description"], rows)));
    }
    Some(Answer { text, page: first_page, anchor, also: Vec::new() })
}

/// Returns where a part of a text begins.
fn offset(text: &str, part: &str) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize).filter(|at| *at < text.len())
}

/// Returns a text in lower case, with single blanks and without marks of code.
fn normal(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(['`', '*'], "").to_lowercase()
}

/// Returns the names most similar to one that means nothing.
fn similar(pages: &Pages, name: &str) -> Vec<String> {
    let mut names = names(pages);
    let mut suggestions = Vec::new();
    while let Some(near) = nearest(name, names.iter().cloned()).filter(|_| suggestions.len() < SUGGESTIONS) {
        names.retain(|other| *other != near);
        suggestions.push(near);
    }
    suggestions
}

/// Returns all names that mean something, apart from headings.
pub fn names(pages: &Pages) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for function in known::all() {
        names.push(function.name);
        names.push(function.module.to_owned());
    }
    names.extend(pages.list.iter().map(|page| page.name.clone()));
    names.extend(TOOLS.iter().chain(COMMANDS).map(|tool| tool.command.to_owned()));
    for page in pages.list.iter().filter(|page| page.name.starts_with("reference/")) {
        let first = |line: &str| cells(line).and_then(|cells| codes(cells.first()?).next().map(str::to_owned));
        names.extend(page.text.lines().filter_map(first));
    }
    names.sort();
    names.dedup();
    names
}

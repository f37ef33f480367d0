//! `brine docs`: shows the documentation without a network.
//!
//! `pages.rs` has the pages, `functions.rs` writes the sections of functions, `look_up.rs` finds what a name means, and
//! `terminal` shows Markdown.

pub mod functions;
mod known;
mod look_up;
mod nav;
mod pages;
pub mod pointers;
pub mod tables;
mod terminal;

pub use self::pointers::point;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};
use clap::{CommandFactory, Parser};

use self::look_up::{Answer, look_up};
use self::pages::{Pages, resolve};
use self::tables::row;
use self::terminal::Style;
use super::usage;
use crate::ui::{ColourChoice, Ui, print_plain_error};

/// The usage line.
pub const USAGE: &str = "brine docs [options] [NAME]";

/// The environment variable with the address of the site.
const URL: &str = "BRINE_DOCS_URL";
/// The directory of the site on this host.
const SITE: &str = "/usr/share/doc/brine/html";
/// The columns of text; longer lines are hard to read.
const COLUMNS: usize = 100;

/// Show the documentation of a function, an option, an event or anything else, without a network
#[derive(Parser, Debug)]
#[command(
    after_help = "NAME is looked up as a function, a row of a table (an option, metric, event tag or code of brine check), a page, a module, a tool, a heading and a phrase, in this order. A word before it chooses one of them: state, execution, runner, wheel, option, metric, event, error, page, module, tool, heading, text.\n\nExamples:\n  brine docs                         list the pages\n  brine docs file.managed            a function\n  brine docs state cmd.run           the state of this name alone\n  brine docs worker_threads          an option\n  brine docs salt/job/1/ret/web1     an event\n  brine docs troubleshooting         a page\n  brine docs reactor#limits          a section of a page\n  brine docs text full disk          the places with these words"
)]
struct Arguments {
    /// What to look up
    #[arg(value_name = "NAME")]
    name: Vec<String>,
    /// Open the page in a browser: on the site at BRINE_DOCS_URL or in /usr/share/doc/brine/html
    #[arg(long)]
    open: bool,
    /// Never use colours
    #[arg(long, alias = "no-colour")]
    no_color: bool,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine docs", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let pages = Pages::load()?;
    let name = arguments.name.join(" ");
    let answer = match name.trim() {
        "" => list(&pages),
        name => match look_up(&pages, name) {
            Ok(answer) => answer,
            Err(near) => {
                print_plain_error(format_args!("brine docs: {}", nothing(name, &near)));
                return Ok(ExitCode::FAILURE);
            }
        },
    };
    if arguments.open {
        open(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut ui = Ui::new(if arguments.no_color { ColourChoice::Never } else { ColourChoice::Auto });
    let width = terminal_size::terminal_size_of(std::io::stdout()).map_or(COLUMNS, |(width, _)| width.0.into());
    let drawing = |image: &str| pages.drawing(&answer.page, image).map(str::to_owned);
    let style = Style { colours: ui.colours(), width: width.min(COLUMNS), drawing: &drawing };
    ui.print(&show(&pages, &answer, style))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of pages, with their titles.
pub fn page_names() -> Vec<(String, String)> {
    let pages = Pages::load().map(|pages| pages.list).unwrap_or_default();
    pages.into_iter().map(|page| (page.name, page.title)).collect()
}

/// Says that a name means nothing.
fn nothing(name: &str, near: &[String]) -> String {
    let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
    let advice = match near.as_slice() {
        [] => "`brine docs` lists the pages".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    format!("nothing is found for '{name}': {advice}")
}

/// Returns the list of all pages.
fn list(pages: &Pages) -> Answer {
    let mut text =
        String::from("# The documentation\n\n`brine docs NAME` shows a page, a function, an option, an event.\n");
    for group in pages.list.chunk_by(|a, b| a.groups == b.groups) {
        if let Some(title) = group.first().map(|page| page.groups.join(", ")).filter(|title| !title.is_empty()) {
            text.push_str(&format!("\n## {title}\n"));
        }
        text.push_str("\n| | |\n|---|---|\n");
        text.extend(group.iter().map(|page| row(&[&format!("`{}`", page.name), &page.title])));
    }
    Answer { text, page: "index".into(), anchor: String::new(), also: Vec::new() }
}

/// Returns an answer as it is shown: its text, and where it leads.
fn show(pages: &Pages, answer: &Answer, style: Style<'_>) -> String {
    let mut links = Vec::new();
    let mut text = terminal::show(&answer.text, style, &mut links);
    let mut seen = BTreeSet::new();
    let mut see = Vec::new();
    for name in &answer.also {
        see.push((name.clone(), String::new()));
    }
    for link in links.iter().filter(|link| !link.contains("://")) {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() { answer.page.clone() } else { resolve(&answer.page, path) };
        let Some(page) = pages.get(target.strip_suffix(".md").unwrap_or(&target)) else { continue };
        let heading = page.section(anchor).map_or(page.title.as_str(), |section| section.heading);
        let name = if anchor.is_empty() { page.name.clone() } else { format!("{}#{anchor}", page.name) };
        if seen.insert(name.clone()) {
            see.push((name, heading.to_owned()));
        }
    }
    if !see.is_empty() {
        let rows = see.iter().map(|(name, heading)| row(&[&format!("`brine docs {name}`"), heading]));
        let rows: String = rows.collect();
        text.push_str("\n\n");
        text.push_str(&terminal::show(&format!("### See also\n\n| | |\n|---|---|\n{rows}"), style, &mut Vec::new()));
    }
    text
}

/// Opens the page of an answer in a browser.
fn open(answer: &Answer) -> anyhow::Result<()> {
    let address = address(answer, std::env::var(URL).ok().as_deref(), Path::new(SITE).exists())?;
    let opened = Command::new("xdg-open").arg(&address).stdin(Stdio::null()).status();
    let status = opened.with_context(|| format!("opening {address} failed: running xdg-open failed"))?;
    if !status.success() {
        bail!("opening {address} failed: xdg-open ended with {status}");
    }
    Ok(())
}

/// Returns the address of the page of an answer.
fn address(answer: &Answer, site: Option<&str>, is_installed: bool) -> anyhow::Result<String> {
    let site = match site.filter(|site| !site.is_empty()) {
        Some(site) if site.starts_with('/') => format!("file://{site}"),
        Some(site) => site.to_owned(),
        None if is_installed => format!("file://{SITE}"),
        None => bail!(
            "opening the page failed: there is no site in {SITE}: install the package brine-doc, set {URL} to the address of a \
             site, or leave --open away"
        ),
    };
    let anchor = if answer.anchor.is_empty() { String::new() } else { format!("#{}", answer.anchor) };
    Ok(format!("{}/{}.html{anchor}", site.trim_end_matches('/'), answer.page))
}

#[cfg(test)]
mod tests;

//! `salt-run state.event`: prints the events of the bus, optionally from a point in the past on: in Salt's format, or
//! with `--follow` and on terminals on one readable line each.

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::Duration;

use brine_event::{Event, SEQ};
use brine_function::Args;
use brine_text::glob::Glob;
use brine_value::{FromValue, Map, Value, json};
use brine_wire::Call;

use super::super::client::{MasterClient, user};
use super::super::{event_line, stdout_reader};
use crate::escape::{escape_json, escape_line};
use crate::ui::{Colour, ColourChoice, Ui, end_with_closed_pipe};

/// The number of past events in one request.
const PAGE: usize = 500;

/// The arguments of the function.
struct Options {
    /// The globs of tags; empty for all.
    matching: Vec<Glob>,
    /// The number of events to print; negative for no limit.
    count: i64,
    quiet: bool,
    pretty: bool,
    timeout: Option<f64>,
    since: Option<String>,
}

impl Options {
    fn read(args: &Args) -> anyhow::Result<Self> {
        let argument = |index: usize, name: &str| {
            args.keyword.get(name).or(args.positional.get(index)).filter(|value| !value.is_nil())
        };
        let number = |index, name| argument(index, name).and_then(i64::from_value);
        let flag = |index, name| argument(index, name).is_some_and(Value::is_truthy);
        let patterns = argument(0, "tagmatch").map(ToString::to_string).unwrap_or_default();
        let patterns = patterns.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        let matching = patterns.map(Glob::new).collect::<Result<_, _>>()?;
        Ok(Options {
            matching,
            count: number(1, "count").unwrap_or(-1),
            quiet: flag(2, "quiet"),
            pretty: flag(4, "pretty"),
            timeout: argument(6, "timeout").and_then(f64::from_value),
            since: args.keyword.get("since").map(|since| point(&since.to_string())).filter(|since| since != "now"),
        })
    }

    fn wants(&self, tag: &str) -> bool {
        self.matching.is_empty() || self.matching.iter().any(|glob| glob.is_match(tag))
    }
}

/// The format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Salt's format: the tag, a tab, JSON.
    Salt,
    /// The same with indented JSON.
    Pretty,
    /// One readable line, truncated to the width of a terminal.
    Line(Option<usize>),
}

impl Form {
    fn new(follows: bool, pretty: bool) -> Self {
        match (pretty, follows || std::io::stdout().is_terminal()) {
            (true, _) => Form::Pretty,
            (false, true) => Form::Line(terminal_width()),
            (false, false) => Form::Salt,
        }
    }
}

/// Returns whether a word is a point in the past rather than the glob of a tag.
pub(super) fn is_point(word: &str) -> bool {
    let is_time = word.parse::<jiff::Timestamp>().is_ok() || word.parse::<jiff::civil::DateTime>().is_ok();
    word == "now" || word.parse::<u64>().is_ok() || ago(word).is_some() || is_time
}

fn ago(since: &str) -> Option<i64> {
    since.strip_suffix(['s', 'm', 'h', 'd']).and_then(|number| number.parse().ok())
}

/// Converts a point in the past for the master: time spans such as `10m` become times.
fn point(since: &str) -> String {
    let ago = ago(since);
    let unit = match since.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        _ => 1,
    };
    let ago = ago.map(|ago| jiff::SignedDuration::from_secs(ago.saturating_mul(unit)));
    ago.and_then(|ago| jiff::Timestamp::now().checked_sub(ago).ok())
        .map_or_else(|| since.to_owned(), |time| time.to_string())
}

/// Formats an event as Salt does: its tag and its JSON.
fn line(tag: &str, data: &Map, pretty: bool) -> (String, String) {
    let data = Value::Map(data.clone());
    let body = if pretty { json::to_json_pretty(&json::sorted(&data), 4) } else { json::to_json(&data) };
    (escape_line(tag).into_owned(), escape_json(&body).into_owned())
}

/// Prints events until the limit, the timeout, Ctrl-C, or the end of stdout's reader. `follows` selects readable lines.
pub(super) async fn run(client: &MasterClient, args: Args, follows: bool, colour: ColourChoice) -> anyhow::Result<()> {
    let options = Options::read(&args)?;
    let form = Form::new(follows, options.pretty);
    tokio::select! {
        result = show(client, options, form, Ui::new(colour)) => result,
        () = stdout_reader::closed() => end_with_closed_pipe(),
    }
}

async fn show(client: &MasterClient, options: Options, form: Form, ui: Ui) -> anyhow::Result<()> {
    // Subscribes before requesting past events, so that there is no gap between them and present ones.
    let mut events = client.events("").await?;
    if options.count == 0 {
        return Ok(());
    }
    let mut present = None;
    let mut view = View { form, ui, options, last: 0, shown: 0 };
    if let Some(since) = view.options.since.clone() {
        let mut from = Value::from(since.as_str());
        loop {
            let page = past(client, from).await?;
            if page.is_empty() {
                break;
            }
            for (seq, tag, data) in &page {
                view.last = *seq;
                view.take(tag, data)?;
                if view.is_done() {
                    return Ok(());
                }
            }
            // On a busy bus the past never ends: it is printed up to the first event from the socket.
            if present.is_none()
                && let Ok(first) = tokio::time::timeout(Duration::ZERO, events.next()).await
            {
                present = Some(first?);
            }
            if present.as_ref().and_then(seq_of).is_some_and(|first| view.last + 1 >= first) {
                break;
            }
            from = Value::from(view.last + 1);
        }
    }
    let timeout = view.options.timeout;
    let time_is_up = async {
        match timeout {
            Some(seconds) => tokio::time::sleep(timeout_of(seconds)).await,
            None => std::future::pending().await,
        }
    };
    let mut time_is_up = std::pin::pin!(time_is_up);
    loop {
        let event = if let Some(event) = present.take() {
            event
        } else {
            tokio::select! {
                event = events.next() => event?,
                () = &mut time_is_up => return Ok(()),
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        };
        let data = event.data();
        let Some(seq) = seq_of(&event) else {
            view.take(event.tag(), &data)?;
            continue;
        };
        if seq <= view.last {
            continue;
        }
        if view.last > 0 && seq > view.last + 1 {
            view.fill(client, seq).await?;
        }
        if !view.is_done() {
            view.last = seq;
            view.take(event.tag(), &data)?;
        }
        if view.is_done() {
            return Ok(());
        }
    }
}

/// The printer of events with its progress.
struct View {
    ui: Ui,
    options: Options,
    form: Form,
    last: u64,
    shown: i64,
}

impl View {
    fn is_done(&self) -> bool {
        self.shown == self.options.count
    }

    /// Prints an event that matches.
    fn take(&mut self, tag: &str, data: &Map) -> anyhow::Result<()> {
        if !self.options.wants(tag) {
            return Ok(());
        }
        self.shown += 1;
        if self.options.quiet {
            return Ok(());
        }
        let colours = self.ui.colours();
        if let Form::Line(width) = self.form {
            return Ok(self.ui.print(&event_line::line(tag, data, width, &brine_clock::zone(), colours))?);
        }
        let (tag, body) = line(tag, data, self.form == Form::Pretty);
        Ok(self.ui.print(&format!("{}\t{body}", colours.paint(Colour::Cyan, &tag)))?)
    }

    /// Prints the events before this sequence number that the socket has dropped, from the journal.
    async fn fill(&mut self, client: &MasterClient, before: u64) -> anyhow::Result<()> {
        while self.last + 1 < before && !self.is_done() {
            let page = past(client, Value::from(self.last + 1)).await?;
            let missing = page.first().map_or(before, |(seq, ..)| (*seq).min(before)) - self.last - 1;
            if missing > 0 {
                self.ui.print_error(&format!("{missing} events are missing: they were removed from the journal"))?;
            }
            self.last += missing;
            for (seq, tag, data) in page.iter().filter(|(seq, ..)| *seq < before) {
                self.last = *seq;
                self.take(tag, data)?;
                if self.is_done() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Converts seconds to a timeout: zero for negative numbers and NaN, the maximum for too large ones.
fn timeout_of(seconds: f64) -> Duration {
    const MAX_SECONDS: Duration = Duration::from_secs(1_000_000_000);
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(MAX_SECONDS).min(MAX_SECONDS)
}

/// Returns the width of the terminal at stdout, if it is one.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

fn seq_of(event: &Event) -> Option<u64> {
    event.data().get(SEQ).and_then(u64::from_value)
}

/// Requests a page of events from the journal.
async fn past(client: &MasterClient, from: Value) -> anyhow::Result<Vec<(u64, String, Map)>> {
    let args = Args::positional([from, Value::from(PAGE as u64)]);
    let call = Call {
        fun: "event_bus.since".into(),
        args,
        key: None,
        proof: None,
        user: user(),
        asynchronous: false,
        jid: None,
        is_salt: false,
    };
    let answer = client.runner(call).await?;
    let data = answer.get("data").cloned().unwrap_or_default();
    let events = data.get("return").cloned().unwrap_or_default();
    if !data.get("success").is_some_and(Value::is_truthy) {
        anyhow::bail!("{events}");
    }
    let one = |event: &Value| {
        let seq = event.get("seq").and_then(u64::from_value)?;
        Some((seq, event.get("tag")?.to_string(), event.get("data")?.as_map()?.clone()))
    };
    Ok(events.as_list().unwrap_or_default().iter().filter_map(one).collect())
}

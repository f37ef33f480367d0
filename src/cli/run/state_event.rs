//! `salt-run state.event`: the event bus, live, and from a point in the past on.

use std::time::Duration;

use brine_core::event::{Event, SEQ};
use brine_core::function::Args;
use brine_core::glob::Glob;
use brine_core::value::{FromValue, json};
use brine_core::wire::Call;
use brine_core::{Map, Value};

use super::super::client::{MasterClient, user};
use crate::ui::{Colour, ColourChoice, Ui};

/// How many events of the past are asked for at once.
const PAGE: i64 = 500;

/// What the line asks for.
struct Options {
    matching: Option<Glob>,
    /// How many events are shown; negative for no end.
    count: i64,
    quiet: bool,
    pretty: bool,
    timeout: Option<f64>,
    since: Option<String>,
}

impl Options {
    fn read(args: &Args) -> anyhow::Result<Self> {
        let given = |place: usize, name: &str| {
            args.keyword.get(name).or(args.positional.get(place)).filter(|value| !value.is_nil())
        };
        let number = |place, name| given(place, name).and_then(i64::from_value);
        let flag = |place, name| given(place, name).is_some_and(Value::is_truthy);
        let matching = given(0, "tagmatch").map(|pattern| Glob::new(&pattern.to_string())).transpose()?;
        Ok(Options {
            matching,
            count: number(1, "count").unwrap_or(-1),
            quiet: flag(2, "quiet"),
            pretty: flag(4, "pretty"),
            timeout: given(6, "timeout").and_then(f64::from_value),
            since: args.keyword.get("since").map(ToString::to_string),
        })
    }

    fn wants(&self, tag: &str) -> bool {
        self.matching.as_ref().is_none_or(|glob| glob.is_match(tag))
    }
}

/// An event as Salt prints it: its tag, a tab, JSON.
fn line(tag: &str, data: &Map, pretty: bool) -> (String, String) {
    let data = Value::Map(data.clone());
    let body = if pretty { json::to_json_pretty(&json::sorted(&data), 4) } else { json::to_json(&data) };
    (tag.to_owned(), body)
}

/// Shows events until there have been enough, the time is up or Ctrl-C is pressed.
pub(super) async fn follow(client: &MasterClient, args: Args, colour: ColourChoice) -> anyhow::Result<()> {
    let options = Options::read(&args)?;
    let mut ui = Ui::new(colour);
    // Before the past is asked for, so that there is no gap between it and the present.
    let mut events = client.events("").await?;
    let (mut shown, mut last) = (0, 0);
    if options.count == 0 {
        return Ok(());
    }
    if let Some(since) = &options.since {
        let mut from = Value::from(since.as_str());
        loop {
            let page = past(client, from).await?;
            for (seq, tag, data) in &page {
                last = *seq;
                if options.wants(tag) {
                    show(&mut ui, &options, tag, data)?;
                    shown += 1;
                    if shown == options.count {
                        return Ok(());
                    }
                }
            }
            if page.is_empty() {
                break;
            }
            from = Value::from(last + 1);
        }
    }
    let time_is_up = async {
        match options.timeout {
            Some(seconds) => tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 1e9))).await,
            None => std::future::pending().await,
        }
    };
    let mut time_is_up = std::pin::pin!(time_is_up);
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            () = &mut time_is_up => return Ok(()),
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let (seq, data) = (seq_of(&event), event.data());
        if seq.is_some_and(|seq| seq <= last) || !options.wants(event.tag()) {
            continue;
        }
        show(&mut ui, &options, event.tag(), &data)?;
        shown += 1;
        if shown == options.count {
            return Ok(());
        }
    }
}

fn seq_of(event: &Event) -> Option<u64> {
    event.data().get(SEQ).and_then(u64::from_value)
}

fn show(ui: &mut Ui, options: &Options, tag: &str, data: &Map) -> anyhow::Result<()> {
    if options.quiet {
        return Ok(());
    }
    let (tag, body) = line(tag, data, options.pretty);
    let tag = ui.colours().paint(Colour::Cyan, &tag);
    Ok(ui.print(&format!("{tag}\t{body}"))?)
}

/// A page of events from the journal.
async fn past(client: &MasterClient, from: Value) -> anyhow::Result<Vec<(u64, String, Map)>> {
    let args = Args::positional([from, PAGE.into()]);
    let call = Call { fun: "event_bus.since".into(), args, key: None, user: user(), asynchronous: false };
    let answer = client.runner(call).await?;
    let data = answer.get("data").cloned().unwrap_or_default();
    let found = data.get("return").cloned().unwrap_or_default();
    if !data.get("success").is_some_and(Value::is_truthy) {
        anyhow::bail!("{found}");
    }
    let one = |event: &Value| {
        let seq = event.get("seq").and_then(u64::from_value)?;
        Some((seq, event.get("tag")?.to_string(), event.get("data")?.as_map()?.clone()))
    };
    Ok(found.as_list().unwrap_or_default().iter().filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_core::map;

    #[test]
    fn events_are_printed_as_salt_prints_them() {
        let data = map! {"b" => 1, "a" => map!{"y" => true, "x" => "ü"}};
        assert_eq!(line("t/x", &data, false).1, r#"{"b": 1, "a": {"y": true, "x": "ü"}}"#);
        insta::assert_snapshot!(line("t/x", &data, true).1, @r#"
        {
            "a": {
                "x": "ü",
                "y": true
            },
            "b": 1
        }
        "#);
    }

    #[test]
    fn options_come_by_place_and_name() {
        let args = Args { positional: vec!["salt/*".into(), 3.into()], keyword: map! {"pretty" => true, "since" => 5} };
        let options = Options::read(&args).unwrap();
        assert!(options.wants("salt/auth") && !options.wants("other"));
        assert_eq!((options.count, options.pretty, options.since.as_deref()), (3, true, Some("5")));
    }
}

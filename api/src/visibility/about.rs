//! What an event is about: the functions and minions of a job, or a minion that has started.

use brine_auth::FIND_JOB;
use brine_event::Event;
use brine_value::{Value, msgpack};

/// The subject of an event, for the decision who may see it.
#[derive(Debug, PartialEq)]
pub(super) enum About {
    /// A new job, or a return of one.
    Job {
        /// The functions with their arguments.
        functions: Vec<(String, Vec<Value>)>,
        /// The minions that the event names.
        minions: Vec<String>,
    },
    /// The start of a minion, by its id.
    Start([String; 1]),
    /// Anything else, which only entries for events make visible.
    Other,
}

impl About {
    /// Reads the subject of an event.
    pub fn of(event: &Event) -> Self {
        let parts: Vec<&str> = event.tag().split('/').collect();
        match parts[..] {
            ["salt", "job", _, "new"] => of_job(event, "arg", None),
            ["salt", "job", _, "ret", minion] => of_job(event, "fun_args", Some(minion)),
            ["salt", "minion", minion, "start"] => About::Start([minion.to_owned()]),
            _ => About::Other,
        }
    }
}

/// Reads the functions and minions of an event; `minion` is the one in the tag of a return.
fn of_job(event: &Event, arguments: &str, minion: Option<&str>) -> About {
    let (mut fun, mut args, mut minions) = (Value::Nil, Value::Nil, Value::Nil);
    let scanned = msgpack::scan(event.body(), |entry| {
        let field = match entry.key {
            Some("fun") => &mut fun,
            Some("minions") if minion.is_none() => &mut minions,
            Some(key) if key == arguments => &mut args,
            _ => return,
        };
        *field = msgpack::unpack(entry.value).unwrap_or_default();
    });
    let args = args.as_list().unwrap_or_default();
    let functions: Vec<(String, Vec<Value>)> = match &fun {
        Value::Str(name) => vec![(name.clone(), args.to_vec())],
        Value::List(names) => {
            let of = |at: usize| args.get(at).and_then(Value::as_list).unwrap_or_default().to_vec();
            names.iter().enumerate().map(|(at, name)| (name.to_string(), of(at))).collect()
        }
        _ => Vec::new(),
    };
    // Polls are permitted to everybody, but their results describe the jobs of others.
    if scanned.is_err() || functions.iter().any(|(name, _)| name == FIND_JOB) {
        return About::Other;
    }
    let minions = match minion {
        Some(minion) => vec![minion.to_owned()],
        None => minions.as_list().unwrap_or_default().iter().map(ToString::to_string).collect(),
    };
    About::Job { functions, minions }
}

//! A minion with the functions of this crate and of those below it, for unit tests.

use brine_context::Rooms;

static ROOMS: Rooms = Rooms(&[brine_modules_files::ROOMS, crate::ROOMS]);

brine_testing::with_rooms!(ROOMS);

/// The result of a state function, and the commands that it has run.
pub struct Applied {
    /// The result: success, failure or `None` in test mode.
    pub result: Option<bool>,
    /// The comment.
    pub comment: String,
    /// The changes.
    pub changes: brine_value::Value,
    /// The commands, one per line.
    pub ran: String,
}

/// Calls a state function on a minion whose programs answer as in a transcript.
pub fn applied(function: &str, keyword: Map, test: bool, transcript: &str) -> Applied {
    let programs = Scripted::new(transcript);
    let grains = brine_value::map! {"os" => "Debian", "os_family" => "Debian", "kernel" => "Linux"};
    let call = context_with(grains, programs.clone());
    let context = brine_testing::state_context(test, call.clone());
    let args = brine_function::Args { keyword, ..brine_function::Args::default() };
    let report = call.minion.states.call(&context, function, args).unwrap();
    Applied {
        result: report.get("result").and_then(brine_value::Value::as_bool),
        comment: report.get("comment").unwrap().to_string(),
        changes: report.get("changes").cloned().unwrap(),
        ran: programs.ran(),
    }
}

//! The functions that call another function, which their arguments name: `schedule.add`, `mine.send`, `salt.execute`, ...
//! Permissions, blacklists and the masking of secrets depend on both functions.

#[cfg(test)]
mod tests;

use brine_function::Args;
use brine_function::carriers::{Called, CalledAt, Carrier, Place, at, keyword, value};
use brine_value::{Map, Value};

/// The execution function that applies a plan: minions that do not know plans, such as those of Salt, answer that it is
/// not available, and so run nothing.
pub const APPLY_PLAN: &str = "state.apply_plan";
/// The runner function whose plan has steps.
pub const ORCHESTRATE: &str = "state.orchestrate";
/// The functions that can be planned.
pub const PLANNED: [&str; 3] = ["state.apply", "state.sls", "state.highstate"];

const SCHEDULE: Carrier = Carrier {
    function: keyword("function"),
    list: Some(keyword("job_args")),
    keywords: Some(keyword("job_kwargs")),
    options: &[
        (keyword("returner"), "ret"),
        (keyword("return_config"), "ret_config"),
        (keyword("return_kwargs"), "ret_kwargs"),
        (keyword("metadata"), "metadata"),
    ],
    ..Carrier::NONE
};

const PUBLISH: Carrier = Carrier {
    function: at(1, "fun"),
    list: Some(at(2, "arg")),
    options: &[(at(4, "returner"), "ret")],
    place: CalledAt::Minions(at(0, "tgt"), at(3, "tgt_type"), "glob"),
    ..Carrier::NONE
};

const SALTUTIL_CMD: Carrier = Carrier {
    function: at(1, "fun"),
    list: Some(at(2, "arg")),
    keywords: Some(at(6, "kwarg")),
    options: &[(at(5, "ret"), "ret")],
    place: CalledAt::Minions(at(0, "tgt"), at(4, "tgt_type"), "glob"),
    ..Carrier::NONE
};

const SALTUTIL_CALL: Carrier = Carrier {
    function: at(0, "name"),
    list: Some(at(1, "arg")),
    keywords: Some(at(2, "kwarg")),
    own: &["full_return"],
    rest: Some(usize::MAX),
    ..Carrier::NONE
};

const SURVEY: Carrier = Carrier {
    function: at(1, "fun"),
    rest: Some(2),
    own: &["tgt", "tgt_type", "survey_sort"],
    place: CalledAt::Minions(at(0, "tgt"), keyword("tgt_type"), "compound"),
    ..Carrier::NONE
};

const CARRIERS: &[Carrier] = &[
    Carrier { name: "schedule.add", ..SCHEDULE },
    Carrier { name: "schedule.modify", ..SCHEDULE },
    Carrier {
        name: "mine.send",
        function: at(0, "name"),
        // The entry in the mine may have another name than the function.
        instead: Some(keyword("mine_function")),
        rest: Some(1),
        own: &["mine_function", "allow_tgt", "allow_tgt_type"],
        ..Carrier::NONE
    },
    Carrier { name: "test.cross_test", function: at(0, "func"), rest: Some(1), ..Carrier::NONE },
    Carrier {
        name: "test.try",
        function: at(0, "module"),
        rest: Some(usize::MAX),
        own: &["return_try_exception"],
        ..Carrier::NONE
    },
    Carrier { name: APPLY_PLAN, function: at(0, "fun"), rest: Some(2), own: &["plan"], ..Carrier::NONE },
    Carrier { name: "snapper.run", function: at(0, "function"), rest: Some(1), ..Carrier::NONE },
    Carrier { name: "saltutil.mmodule", function: at(1, "fun"), rest: Some(2), own: &["saltenv"], ..Carrier::NONE },
    Carrier { name: "publish.publish", ..PUBLISH },
    Carrier { name: "publish.full_data", ..PUBLISH },
    Carrier {
        name: "publish.runner",
        function: at(0, "fun"),
        list: Some(at(1, "arg")),
        place: CalledAt::Runner,
        ..Carrier::NONE
    },
    Carrier { name: "saltutil.cmd", ..SALTUTIL_CMD },
    Carrier { name: "saltutil.cmd_iter", ..SALTUTIL_CMD },
    Carrier { name: "saltutil.runner", place: CalledAt::Runner, ..SALTUTIL_CALL },
    Carrier { name: "saltutil.wheel", place: CalledAt::Wheel, ..SALTUTIL_CALL },
    Carrier {
        name: "runner.salt.cmd",
        function: at(0, "fun"),
        rest: Some(1),
        own: &["with_pillar"],
        place: CalledAt::Host,
        ..Carrier::NONE
    },
    Carrier {
        name: "runner.salt.execute",
        function: at(1, "fun"),
        list: Some(at(2, "arg")),
        keywords: Some(at(7, "kwarg")),
        rest: Some(usize::MAX),
        own: &["tgt", "timeout", "tgt_type", "ret", "jid"],
        // A job id of another user's job would make the call a part of that job.
        options: &[(at(5, "ret"), "ret"), (at(6, "jid"), "jid")],
        place: CalledAt::Minions(at(0, "tgt"), at(4, "tgt_type"), "glob"),
        ..Carrier::NONE
    },
    Carrier {
        name: "runner.batch.start",
        function: at(1, "fun"),
        list: Some(at(2, "arg")),
        options: &[(at(8, "ret"), "ret"), (at(9, "kwargs"), "")],
        place: CalledAt::Minions(at(0, "tgt"), at(3, "tgt_type"), "glob"),
        ..Carrier::NONE
    },
    Carrier { name: "runner.survey.hash", ..SURVEY },
    Carrier { name: "runner.survey.diff", ..SURVEY },
    Carrier {
        name: "runner.queue.insert_runner",
        function: at(0, "fun"),
        list: Some(at(1, "args")),
        keywords: Some(at(2, "kwargs")),
        place: CalledAt::Runner,
        ..Carrier::NONE
    },
    Carrier {
        name: "runner.ssh.cmd",
        shell: Some((at(6, "raw_shell"), "cmd.run")),
        function: at(1, "fun"),
        list: Some(at(2, "arg")),
        keywords: Some(at(5, "kwarg")),
        place: CalledAt::Host,
        ..Carrier::NONE
    },
];

/// Returns how a function names another one; `None` if it does not. Functions of the master have the prefix `runner.` or
/// `wheel.`.
pub fn carrier(name: &str) -> Option<&'static Carrier> {
    CARRIERS.iter().find(|carrier| carrier.name == name)
}

/// Returns the functions that the arguments of a function name; none if it calls no others. Functions of the master have
/// the prefix `runner.` or `wheel.`.
pub fn called(function: &str, args: &Args) -> Vec<Called> {
    match function {
        "mine.update" => mine_functions(value(args, at(1, "mine_functions")), &Place::Same),
        "runner.mine.update" => {
            let tgt_type = value(args, at(1, "tgt_type")).map_or_else(|| "glob".to_owned(), ToString::to_string);
            let place = Place::Minions { tgt: value(args, at(0, "tgt")).cloned().unwrap_or_default(), tgt_type };
            mine_functions(value(args, at(3, "mine_functions")), &place)
        }
        "runner.brine.upgrade" => vec![upgrade(args)],
        "saltcheck.state_apply" => {
            let (function, args) = ("state.apply".to_owned(), args.clone());
            vec![Called { function, args, place: Place::Same, options: Map::new() }]
        }
        "saltcheck.run_test" => value(args, at(0, "test")).and_then(Value::as_map).map(of_test).into_iter().collect(),
        _ => carrier(function).map(|carrier| carrier.called(args)).unwrap_or_default(),
    }
}

/// The maximum number of functions of which each names the next one. Permissions and blacklists refuse longer chains.
pub const MAX_DEPTH: usize = 4;

/// Returns the names of all functions that a call leads to, as [`called`]; `None` beyond [`MAX_DEPTH`].
pub fn all_called(function: &str, args: &Args) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut level = called(function, args);
    for _ in 0..MAX_DEPTH {
        if level.is_empty() {
            return Some(names);
        }
        let next = level.iter().flat_map(|one| called(&one.full_name(), &one.args)).collect();
        names.extend(level.into_iter().map(|one| one.function));
        level = next;
    }
    level.is_empty().then_some(names)
}

/// Returns the execution function that the runner function of the same name calls.
fn upgrade(args: &Args) -> Called {
    const FORWARDED: [(usize, &str); 5] =
        [(3, "source"), (4, "version"), (5, "saltenv"), (6, "allow_downgrade"), (7, "force")];
    let forwarded = FORWARDED.iter().filter_map(|(position, name)| {
        let argument = value(args, at(*position, name))?;
        Some((Value::from(*name), argument.clone()))
    });
    let keyword = forwarded.collect();
    let tgt_type = value(args, at(1, "tgt_type")).map_or_else(|| "glob".to_owned(), ToString::to_string);
    let place = Place::Minions { tgt: value(args, at(0, "tgt")).cloned().unwrap_or_default(), tgt_type };
    let args = Args { positional: Vec::new(), keyword };
    Called { function: "brine.upgrade".to_owned(), args, place, options: Map::new() }
}

/// Returns the function of a test.
fn of_test(test: &Map) -> Called {
    let keyword = test.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
    let positional = test.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
    let function = test.get("module_and_function").map(ToString::to_string).unwrap_or_default();
    Called { function, args: Args { positional, keyword }, place: Place::Same, options: Map::new() }
}

/// Returns the functions in the form of the option `mine_functions`.
fn mine_functions(option: Option<&Value>, place: &Place) -> Vec<Called> {
    let one = |name: &Value, definition: &Value| {
        let mut args = Args::default();
        let parts = match definition {
            Value::Map(_) => std::slice::from_ref(definition),
            other => other.as_list().unwrap_or_default(),
        };
        for part in parts {
            match part {
                Value::Map(keywords) => args.keyword.extend(keywords.clone()),
                other => args.positional.push(other.clone()),
            }
        }
        let function = args.keyword.shift_remove("mine_function").unwrap_or_else(|| name.clone()).to_string();
        Called { function, args, place: place.clone(), options: Map::new() }
    };
    match option {
        Some(Value::Map(functions)) => functions.iter().map(|(name, definition)| one(name, definition)).collect(),
        Some(Value::List(names)) => names.iter().map(|name| one(name, &Value::Nil)).collect(),
        _ => Vec::new(),
    }
}

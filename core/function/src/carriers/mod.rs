//! Functions that call another function, which their arguments name: `schedule.add`, `mine.send`, `salt.execute`, ... The
//! caller of such a function is a caller of the other one, too: permissions and the masking of secrets depend on both.

#[cfg(test)]
mod tests;

use brine_value::{Map, Value};

use crate::Args;

/// A parameter: its name, and its position; `None` if it is a keyword only.
type Parameter = (&'static str, Option<usize>);

/// The place where the called function runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// The minions of the calling job.
    Same,
    /// Other minions.
    Minions {
        /// The target.
        tgt: Value,
        /// The type of the target.
        tgt_type: String,
    },
    /// The master's host, or hosts of a roster, which are not minions.
    Host,
    /// The master, as a runner function.
    Runner,
    /// The master, as a wheel function.
    Wheel,
}

/// A function that the arguments of another one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The full name; empty if the arguments leave it open.
    pub function: String,
    /// Its arguments.
    pub args: Args,
    /// The place where it runs.
    pub place: Place,
    /// Options of the job that calls it, such as `ret`.
    pub options: Map,
}

/// How the arguments of a function name another one.
#[derive(Debug)]
pub struct Carrier {
    /// The full name; that of a runner function has the prefix `runner.`.
    pub name: &'static str,
    /// The parameter with the name of the called function.
    pub function: Parameter,
    /// The parameter with a list of positional arguments.
    pub list: Option<Parameter>,
    /// The parameter with a mapping of keyword arguments.
    pub keywords: Option<Parameter>,
    /// The position from which positional arguments are those of the called function, as are all unknown keywords.
    pub rest: Option<usize>,
    /// Keyword parameters beside these, which the called function does not get.
    own: &'static [&'static str],
    /// Parameters with options of the job, and the names of these.
    options: &'static [(Parameter, &'static str)],
    place: Where,
}

#[derive(Debug, Clone, Copy)]
enum Where {
    Same,
    /// The parameters of the target and its type.
    Minions(Parameter, Parameter, &'static str),
    Host,
    Runner,
    Wheel,
}

const fn keyword(name: &'static str) -> Parameter {
    (name, None)
}

const fn at(position: usize, name: &'static str) -> Parameter {
    (name, Some(position))
}

const NONE: Carrier = Carrier {
    name: "",
    function: keyword("fun"),
    list: None,
    keywords: None,
    rest: None,
    own: &[],
    options: &[],
    place: Where::Same,
};

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
    ..NONE
};

const PUBLISH: Carrier = Carrier {
    function: at(1, "fun"),
    list: Some(at(2, "arg")),
    options: &[(at(4, "returner"), "ret")],
    place: Where::Minions(at(0, "tgt"), at(3, "tgt_type"), "glob"),
    ..NONE
};

const SALTUTIL_CMD: Carrier = Carrier {
    function: at(1, "fun"),
    list: Some(at(2, "arg")),
    keywords: Some(at(6, "kwarg")),
    options: &[(at(5, "ret"), "ret")],
    place: Where::Minions(at(0, "tgt"), at(4, "tgt_type"), "glob"),
    ..NONE
};

const SALTUTIL_CALL: Carrier = Carrier {
    function: at(0, "name"),
    list: Some(at(1, "arg")),
    keywords: Some(at(2, "kwarg")),
    own: &["full_return"],
    rest: Some(usize::MAX),
    ..NONE
};

const SURVEY: Carrier = Carrier {
    function: at(1, "fun"),
    rest: Some(2),
    own: &["tgt", "tgt_type", "survey_sort"],
    place: Where::Minions(at(0, "tgt"), keyword("tgt_type"), "compound"),
    ..NONE
};

/// The name of the function that sends results to the mine, whose entry may have another name than the function.
const MINE_SEND: &str = "mine.send";

const CARRIERS: &[Carrier] = &[
    Carrier { name: "schedule.add", ..SCHEDULE },
    Carrier { name: "schedule.modify", ..SCHEDULE },
    Carrier {
        name: MINE_SEND,
        function: at(0, "name"),
        rest: Some(1),
        own: &["mine_function", "allow_tgt", "allow_tgt_type"],
        ..NONE
    },
    Carrier { name: "test.cross_test", function: at(0, "func"), rest: Some(1), ..NONE },
    Carrier {
        name: "test.try",
        function: at(0, "module"),
        rest: Some(usize::MAX),
        own: &["return_try_exception"],
        ..NONE
    },
    Carrier { name: "snapper.run", function: at(0, "function"), rest: Some(1), ..NONE },
    Carrier { name: "saltutil.mmodule", function: at(1, "fun"), rest: Some(2), own: &["saltenv"], ..NONE },
    Carrier { name: "publish.publish", ..PUBLISH },
    Carrier { name: "publish.full_data", ..PUBLISH },
    Carrier { name: "publish.runner", function: at(0, "fun"), list: Some(at(1, "arg")), place: Where::Runner, ..NONE },
    Carrier { name: "saltutil.cmd", ..SALTUTIL_CMD },
    Carrier { name: "saltutil.cmd_iter", ..SALTUTIL_CMD },
    Carrier { name: "saltutil.runner", place: Where::Runner, ..SALTUTIL_CALL },
    Carrier { name: "saltutil.wheel", place: Where::Wheel, ..SALTUTIL_CALL },
    Carrier {
        name: "runner.salt.cmd",
        function: at(0, "fun"),
        rest: Some(1),
        own: &["with_pillar"],
        place: Where::Host,
        ..NONE
    },
    Carrier {
        name: "runner.salt.execute",
        function: at(1, "fun"),
        list: Some(at(2, "arg")),
        keywords: Some(at(7, "kwarg")),
        rest: Some(usize::MAX),
        own: &["tgt", "timeout", "tgt_type", "ret", "jid"],
        options: &[(at(5, "ret"), "ret")],
        place: Where::Minions(at(0, "tgt"), at(4, "tgt_type"), "glob"),
    },
    Carrier {
        name: "runner.batch.start",
        function: at(1, "fun"),
        list: Some(at(2, "arg")),
        options: &[(at(8, "ret"), "ret"), (at(9, "kwargs"), "")],
        place: Where::Minions(at(0, "tgt"), at(3, "tgt_type"), "glob"),
        ..NONE
    },
    Carrier { name: "runner.survey.hash", ..SURVEY },
    Carrier { name: "runner.survey.diff", ..SURVEY },
    Carrier {
        name: "runner.queue.insert_runner",
        function: at(0, "fun"),
        list: Some(at(1, "args")),
        keywords: Some(at(2, "kwargs")),
        place: Where::Runner,
        ..NONE
    },
    Carrier {
        name: "runner.ssh.cmd",
        function: at(1, "fun"),
        list: Some(at(2, "arg")),
        keywords: Some(at(5, "kwarg")),
        place: Where::Host,
        ..NONE
    },
];

/// The function that a command in the shell of a host counts as.
const SHELL: &str = "cmd.run";

impl Carrier {
    /// Returns how this function names another one; `None` if it does not. Functions of the master have the prefix
    /// `runner.` or `wheel.`.
    pub fn of(name: &str) -> Option<&'static Carrier> {
        CARRIERS.iter().find(|carrier| carrier.name == name)
    }

    /// Returns the name of the called function.
    pub fn function_in(&self, args: &Args) -> Option<String> {
        let other = (self.name == MINE_SEND).then(|| args.keyword.get("mine_function")).flatten();
        other.filter(|name| !name.is_nil()).or_else(|| value(args, self.function)).map(ToString::to_string)
    }

    /// Returns the prefix of the called function among functions of minions and of the master.
    pub fn prefix(&self) -> &'static str {
        match self.place {
            Where::Runner => "runner.",
            Where::Wheel => "wheel.",
            Where::Same | Where::Minions(..) | Where::Host => "",
        }
    }

    /// Whether a keyword belongs to this function, and not to the called one.
    pub fn owns(&self, name: &str) -> bool {
        let is = |parameter: Option<Parameter>| parameter.is_some_and(|(own, _)| own == name);
        self.rest.is_none()
            || self.own.contains(&name)
            || name == self.function.0
            || is(self.list)
            || is(self.keywords)
            || name.starts_with("__pub_")
    }

    fn called(&self, args: &Args) -> Vec<Called> {
        let mut positional = match self.list.and_then(|list| value(args, list)) {
            None | Some(Value::Nil) => Vec::new(),
            Some(Value::List(list)) => list.clone(),
            Some(one) => vec![one.clone()],
        };
        positional.extend(args.positional.iter().skip(self.rest.unwrap_or(usize::MAX)).cloned());
        let mut of_called = Args::from_wire(&positional);
        let further = args.keyword.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| self.owns(name)));
        of_called.keyword.extend(further.map(|(name, value)| (name.clone(), value.clone())));
        if let Some(Value::Map(map)) = self.keywords.and_then(|keywords| value(args, keywords)) {
            of_called.keyword.extend(map.clone());
        }
        let place = match self.place {
            Where::Same => Place::Same,
            Where::Host => Place::Host,
            Where::Runner => Place::Runner,
            Where::Wheel => Place::Wheel,
            Where::Minions(tgt, tgt_type, default) => Place::Minions {
                tgt: value(args, tgt).cloned().unwrap_or_default(),
                tgt_type: value(args, tgt_type).map_or_else(|| default.to_owned(), ToString::to_string),
            },
        };
        let mut options = Map::new();
        for (parameter, name) in self.options {
            match value(args, *parameter) {
                Some(Value::Map(all)) if name.is_empty() => options.extend(all.clone()),
                Some(value) if value.is_truthy() => _ = options.insert((*name).into(), value.clone()),
                _ => {}
            }
        }
        let is_shell = value(args, at(6, "raw_shell")).is_some_and(Value::is_truthy) && self.name == "runner.ssh.cmd";
        let function = if is_shell { Some(SHELL.to_owned()) } else { self.function_in(args) };
        // A batch may have several functions, each with its arguments.
        if let Some(Value::List(functions)) = value(args, self.function).filter(|_| !is_shell) {
            let of = |index: usize| match positional.get(index) {
                Some(Value::List(own)) => Args::from_wire(own),
                _ => Args::default(),
            };
            let each = functions.iter().enumerate().map(|(index, function)| Called {
                function: function.to_string(),
                args: of(index),
                place: place.clone(),
                options: options.clone(),
            });
            return each.collect();
        }
        vec![Called { function: function.unwrap_or_default(), args: of_called, place, options }]
    }
}

fn value(args: &Args, (name, position): Parameter) -> Option<&Value> {
    args.keyword.get(name).or_else(|| args.positional.get(position?))
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
        "saltcheck.state_apply" => {
            let (function, args) = ("state.apply".to_owned(), args.clone());
            vec![Called { function, args, place: Place::Same, options: Map::new() }]
        }
        "saltcheck.run_test" => value(args, at(0, "test")).and_then(Value::as_map).map(of_test).into_iter().collect(),
        _ => Carrier::of(function).map(|carrier| carrier.called(args)).unwrap_or_default(),
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

impl Called {
    /// Returns the name with the prefix of functions of the master.
    pub fn full_name(&self) -> String {
        match self.place {
            Place::Runner => format!("runner.{}", self.function),
            Place::Wheel => format!("wheel.{}", self.function),
            Place::Same | Place::Minions { .. } | Place::Host => self.function.clone(),
        }
    }
}

/// Returns the function of a test.
fn of_test(test: &Map) -> Called {
    let keyword = test.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
    let positional = test.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
    let function = test.get("module_and_function").map(ToString::to_string).unwrap_or_default();
    Called { function, args: Args { positional, keyword }, place: Place::Same, options: Map::new() }
}

/// Returns the functions in the form of the option `mine_functions`.
fn mine_functions(given: Option<&Value>, place: &Place) -> Vec<Called> {
    let one = |name: &Value, given: &Value| {
        let mut args = Args::default();
        let parts = match given {
            Value::Map(_) => std::slice::from_ref(given),
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
    match given {
        Some(Value::Map(functions)) => functions.iter().map(|(name, given)| one(name, given)).collect(),
        Some(Value::List(names)) => names.iter().map(|name| one(name, &Value::Nil)).collect(),
        _ => Vec::new(),
    }
}

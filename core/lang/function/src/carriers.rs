//! How the arguments of a function name another one, which it calls. The caller of such a function is a caller of the
//! other one, too: permissions and the masking of secrets depend on both.

use brine_value::{Map, Value};

use crate::Args;

/// A parameter: its name, and its position; `None` if it is a keyword only.
pub type Parameter = (&'static str, Option<usize>);

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
    /// A keyword that names the called function instead.
    pub instead: Option<Parameter>,
    /// A parameter by which the arguments are a command of a shell, and the function as which that counts.
    pub shell: Option<(Parameter, &'static str)>,
    /// The parameter with a list of positional arguments.
    pub list: Option<Parameter>,
    /// The parameter with a mapping of keyword arguments.
    pub keywords: Option<Parameter>,
    /// The position from which positional arguments are those of the called function, as are all unknown keywords.
    pub rest: Option<usize>,
    /// Keyword parameters beside these, which the called function does not get.
    pub own: &'static [&'static str],
    /// Parameters with options of the job, and the names of these; an empty name for a mapping of options.
    pub options: &'static [(Parameter, &'static str)],
    /// The place where the called function runs.
    pub place: CalledAt,
}

/// The place where a called function runs, as the parameters say it.
#[derive(Debug, Clone, Copy)]
pub enum CalledAt {
    /// The minions of the calling job.
    Same,
    /// The parameters of the target and its type, and the default type.
    Minions(Parameter, Parameter, &'static str),
    /// The master's host, or hosts of a roster.
    Host,
    /// The master, as a runner function.
    Runner,
    /// The master, as a wheel function.
    Wheel,
}

/// Returns a parameter that is a keyword only.
pub const fn keyword(name: &'static str) -> Parameter {
    (name, None)
}

/// Returns a parameter with a position.
pub const fn at(position: usize, name: &'static str) -> Parameter {
    (name, Some(position))
}

impl Carrier {
    /// A carrier without parameters, for `..Carrier::NONE`.
    pub const NONE: Carrier = Carrier {
        name: "",
        function: keyword("fun"),
        instead: None,
        shell: None,
        list: None,
        keywords: None,
        rest: None,
        own: &[],
        options: &[],
        place: CalledAt::Same,
    };

    /// Returns the name of the called function.
    pub fn function_in(&self, args: &Args) -> Option<String> {
        let other = self.instead.and_then(|instead| value(args, instead)).filter(|name| !name.is_nil());
        other.or_else(|| value(args, self.function)).map(ToString::to_string)
    }

    /// Returns the prefix of the called function among functions of minions and of the master.
    pub fn prefix(&self) -> &'static str {
        match self.place {
            CalledAt::Runner => "runner.",
            CalledAt::Wheel => "wheel.",
            CalledAt::Same | CalledAt::Minions(..) | CalledAt::Host => "",
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

    /// Returns the functions that these arguments name.
    pub fn called(&self, args: &Args) -> Vec<Called> {
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
            CalledAt::Same => Place::Same,
            CalledAt::Host => Place::Host,
            CalledAt::Runner => Place::Runner,
            CalledAt::Wheel => Place::Wheel,
            CalledAt::Minions(tgt, tgt_type, default) => Place::Minions {
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
        let shell = self.shell.filter(|(parameter, _)| value(args, *parameter).is_some_and(Value::is_truthy));
        let function = shell.map(|(_, function)| function.to_owned()).or_else(|| self.function_in(args));
        // A batch may have several functions, each with its arguments.
        if let Some(Value::List(functions)) = value(args, self.function).filter(|_| shell.is_none()) {
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

/// Returns the value of a parameter.
pub fn value(args: &Args, (name, position): Parameter) -> Option<&Value> {
    args.keyword.get(name).or_else(|| args.positional.get(position?))
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

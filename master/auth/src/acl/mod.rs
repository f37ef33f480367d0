//! Entries that permit functions to a user, in the forms of Salt's `external_auth` and `publisher_acl`:
//!
//! ```yaml
//! - test.*                                  # on any minion
//! - 'web*': [state.apply, pkg.*]            # if the compound target matches all minions of the job
//! - 'db1': {cmd.run: {args: ['uptime.*'], kwargs: {cwd: /tmp}}}
//! - '@runner'                               # every runner function; likewise @wheel and @jobs, a runner module
//! - '@runner': [jobs.*]
//! - events: ['salt/job/*']                  # events by tag, as globs
//! - '@options': [metadata, {ret: redis}]    # options of jobs, such as returners
//! ```
//!
//! Function names and arguments are regular expressions anchored at the start, as in Salt.

mod ineffective;
mod options;

use std::collections::HashSet;
use std::sync::LazyLock;

use brine_carriers::{APPLY_PLAN, MAX_DEPTH, called};
use brine_function::Args;
use brine_function::carriers::{Called, Place};
use brine_target::{Pcre, TargetError};
use brine_value::{Map, Value};
use nix::unistd::{User, geteuid};

pub use ineffective::ineffective;

use crate::events::EventPermissions;
use options::{OPTIONS, OptionRule};

/// The key of entries that permit events. A minion of this name is targeted by `L@events`.
const EVENTS: &str = "events";
/// The function by which clients ask silent minions about a job. Everyone who may call any function may call it.
pub const FIND_JOB: &str = "saltutil.find_job";
/// The function by which clients find the minions that answer, before a job in batches.
pub const PING: &str = "test.ping";
/// The function by which clients find the minions that have a function, for a job on some of them.
pub const LIST_FUNCTIONS: &str = "sys.list_functions";

/// The runner function that returns any events of the journal.
const JOURNAL: &str = "event_bus.since";

/// Whether jobs with this user name may belong to the master's own user. If so, users of the same name may not claim
/// them. `own_user` is the option `user`.
pub fn may_be_masters(name: &str, own_user: Option<&str>) -> bool {
    OWN_USERS.contains(&name)
        || own_user == Some(name)
        || name.starts_with("sudo_")
        || PROCESS_USER.as_deref() == Some(name)
}

/// The user names in jobs of the master itself: its usual user, reactions, the schedule, and the API.
const OWN_USERS: &[&str] = &["root", "Reactor", "schedule", "salt-api"];

/// The user of this process, which is usually the master's.
static PROCESS_USER: LazyLock<Option<String>> =
    LazyLock::new(|| User::from_uid(geteuid()).ok().flatten().map(|user| user.name));

/// The entries of one user.
#[derive(Debug, Default)]
pub struct Acl {
    entries: Vec<Entry>,
    /// Whether the master publishes the job of a plan only if another user has approved the plan.
    has_approved_plans: bool,
}

#[derive(Debug)]
enum Entry {
    /// Minion functions, on any minion.
    Anywhere(Pattern),
    /// Minion functions, if a compound target matches all minions of the job.
    On(String, Vec<Rule>),
    /// All functions of a kind (`@runner`, `@wheel`), or of one of its modules.
    Calls(String),
    /// Functions of a kind or module.
    CallsOf(String, Vec<Rule>),
    /// Globs of event tags.
    Events(Vec<String>),
    /// Options of jobs.
    Options(Vec<OptionRule>),
}

#[derive(Debug)]
struct Rule {
    function: Pattern,
    /// The permitted arguments, of which one entry has to match; `None` permits any arguments.
    arguments: Option<Vec<Arguments>>,
}

#[derive(Debug)]
struct Arguments {
    positional: Vec<ArgumentPattern>,
    keyword: Vec<(String, ArgumentPattern)>,
}

/// The permitted values of an argument: the patterns of which one has to match; `None` permits any value.
#[derive(Debug)]
struct ArgumentPattern(Option<Vec<Pattern>>);

impl ArgumentPattern {
    /// Parses a pattern, or a list of alternatives.
    fn new(value: &Value) -> Self {
        let alternatives = one_or_many(value);
        let is_any = alternatives.iter().any(Value::is_nil);
        ArgumentPattern((!is_any).then(|| alternatives.iter().map(|one| Pattern::new(&one.to_string())).collect()))
    }

    /// Whether a value is permitted: each item of a list, or the value as a string.
    fn permits(&self, value: &Value) -> bool {
        let Some(alternatives) = &self.0 else { return true };
        let is_match = |value: &Value| {
            let text = value.to_string();
            alternatives.iter().any(|pattern| pattern.matches(&text))
        };
        is_match(value) || value.as_list().is_some_and(|items| !items.is_empty() && items.iter().all(is_match))
    }
}

/// A regular expression anchored at the start. An invalid one matches nothing.
#[derive(Debug)]
struct Pattern(Option<Pcre>);

impl Pattern {
    fn new(text: &str) -> Self {
        Self::of(text, Pcre::parse(text))
    }

    /// Compiles an expression that has to match a text as a whole.
    fn whole(text: &str) -> Self {
        Self::of(text, Pcre::parse_whole(text))
    }

    fn of(text: &str, compiled: Result<Pcre, TargetError>) -> Self {
        if let Err(error) = &compiled {
            tracing::error!(pattern = text, %error, "an entry of an access list permits nothing");
        }
        Pattern(compiled.ok())
    }

    fn matches(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }
}

/// A job that a user wants to publish.
#[derive(Debug)]
pub struct JobRequest<'a> {
    /// The functions, each with its arguments in Salt's wire format.
    pub functions: Vec<(&'a str, &'a [Value])>,
    /// The ids of all targeted minions.
    pub minions: &'a [String],
}

/// The kind of a call of a master function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A runner function.
    Runner,
    /// A wheel function.
    Wheel,
}

impl CallKind {
    fn name(self) -> &'static str {
        match self {
            CallKind::Runner => "runner",
            CallKind::Wheel => "wheel",
        }
    }

    /// Whether an entry `@name` applies to all functions of this kind.
    fn is_meant(self, name: &str) -> bool {
        name.strip_suffix('s').unwrap_or(name) == self.name()
    }
}

impl Acl {
    /// Parses entries. An entry in none of the supported forms permits nothing and is logged.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a Value>) -> Self {
        Acl { entries: entries.into_iter().filter_map(entry).collect(), has_approved_plans: false }
    }

    /// Returns the entries for a master that publishes approved plans alone: the function of plans then needs no permission
    /// for the function that was planned.
    #[must_use]
    pub fn with_approved_plans(self) -> Self {
        Acl { has_approved_plans: true, ..self }
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the events that a user with these entries may see by their tags. `is_open` is the option `open_events`.
    pub fn event_permissions(&self, is_open: bool) -> EventPermissions {
        let globs = || {
            self.entries.iter().filter_map(|entry| if let Entry::Events(globs) = entry { Some(globs) } else { None })
        };
        match globs().next() {
            _ if self.is_empty() => EventPermissions::default(),
            Some(_) => EventPermissions::matching(globs().flatten().map(String::as_str)),
            None if is_open || self.permits_call(CallKind::Runner, JOURNAL, &[], &Map::new()) => {
                EventPermissions::all()
            }
            None => EventPermissions::default(),
        }
    }

    /// Returns the targets of the entries.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .filter_map(|entry| if let Entry::On(target, _) = entry { Some(target.as_str()) } else { None })
    }

    /// Whether a user with these entries may call any function on these minions. `minions_of` is that of
    /// [`Acl::permits_job`].
    pub fn reaches(&self, minions: &[String], minions_of: impl Fn(&str) -> Option<HashSet<String>>) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::Anywhere(_) => true,
            Entry::On(target, rules) => !rules.is_empty() && covers(target, minions, &minions_of),
            Entry::Calls(_) | Entry::CallsOf(..) | Entry::Events(_) | Entry::Options(_) => false,
        })
    }

    /// Returns whether there are entries for functions.
    fn has_functions(&self) -> bool {
        self.entries.iter().any(|entry| !matches!(entry, Entry::Events(_) | Entry::Options(_)))
    }

    /// Whether a user with these entries may set an option of a job to this value.
    pub fn permits_option(&self, name: &str, value: &Value) -> bool {
        let rules = self.entries.iter().filter_map(|entry| match entry {
            Entry::Options(rules) => Some(rules),
            _ => None,
        });
        options::permit(rules.flatten(), name, value)
    }

    /// Whether a user with these entries may set all of these options of a job. Of `ret`, each returner has to be permitted.
    pub fn permits_options(&self, options: &Map) -> bool {
        options.iter().all(|(name, value)| match (name.as_str(), value) {
            (Some("ret"), Value::Str(names)) => {
                names.split(',').all(|name| self.permits_option("ret", &name.trim().into()))
            }
            (Some(name), value) => self.permits_option(name, value),
            (None, _) => false,
        })
    }

    /// Whether a user with these entries may publish a job. Each function has to be permitted on each minion, as have
    /// functions that arguments name, such as the one of `schedule.add`.
    /// `minions_of` returns the minions of a compound target, or `None` if it is invalid. An entry with a target does
    /// not permit a job without minions, which only minions of a syndic could match.
    pub fn permits_job(&self, job: &JobRequest<'_>, minions_of: impl Fn(&str) -> Option<HashSet<String>>) -> bool {
        if !self.has_functions() || job.functions.is_empty() {
            return false;
        }
        job.functions.iter().all(|(function, arguments)| {
            let args = Args::from_wire(arguments);
            *function == FIND_JOB || self.permits_function(function, &args, job.minions, &minions_of, 0)
        })
    }

    fn permits_function(
        &self,
        function: &str,
        args: &Args,
        minions: &[String],
        minions_of: &dyn Fn(&str) -> Option<HashSet<String>>,
        depth: usize,
    ) -> bool {
        let permits = |entry: &Entry| match entry {
            Entry::Anywhere(pattern) => pattern.matches(function),
            Entry::On(target, rules) => {
                rules.iter().any(|rule| rule.permits(function, &args.positional, &args.keyword))
                    && covers(target, minions, minions_of)
            }
            Entry::Calls(_) | Entry::CallsOf(..) | Entry::Events(_) | Entry::Options(_) => false,
        };
        let is_approved = self.has_approved_plans && function == APPLY_PLAN;
        self.entries.iter().any(permits)
            && (is_approved || {
                let all = called(function, args);
                all.iter().all(|one| {
                    let minions = if one.place == Place::Same { minions } else { &[] };
                    self.permits_inner(one, minions, minions_of, depth + 1)
                })
            })
    }

    /// Whether a user with these entries may call a function that the arguments of a permitted one name, with the
    /// options of its job. `minions` are those on which it runs: none for other hosts, and if they are unknown, so that
    /// only entries for all minions permit it.
    pub fn permits_called(
        &self,
        called: &Called,
        minions: &[String],
        minions_of: impl Fn(&str) -> Option<HashSet<String>>,
    ) -> bool {
        self.permits_inner(called, minions, &minions_of, 1)
    }

    fn permits_inner(
        &self,
        one: &Called,
        minions: &[String],
        minions_of: &dyn Fn(&str) -> Option<HashSet<String>>,
        depth: usize,
    ) -> bool {
        if depth > MAX_DEPTH || !self.permits_options(&one.options) {
            return false;
        }
        let kind = match one.place {
            Place::Runner => CallKind::Runner,
            Place::Wheel => CallKind::Wheel,
            Place::Same | Place::Minions { .. } | Place::Host => {
                return self.permits_function(&one.function, &one.args, minions, minions_of, depth);
            }
        };
        let further = called(&one.full_name(), &one.args);
        self.permits_call(kind, &one.function, &one.args.positional, &one.args.keyword)
            && further.iter().all(|further| self.permits_inner(further, &[], minions_of, depth + 1))
    }

    /// Returns whether a user with these entries may call a runner or wheel function, apart from functions that its
    /// arguments name ([`Acl::permits_called`]).
    pub fn permits_call(&self, kind: CallKind, function: &str, positional: &[Value], keyword: &Map) -> bool {
        let Some((module, name)) = function.split_once('.').filter(|(_, name)| !name.contains('.')) else {
            return false;
        };
        self.entries.iter().any(|entry| match entry {
            Entry::Calls(scope) => scope == module || kind.is_meant(scope),
            Entry::CallsOf(scope, rules) => {
                let named = |name: &str| rules.iter().any(|rule| rule.permits(name, positional, keyword));
                (scope == module && named(name)) || (kind.is_meant(scope) && named(function))
            }
            Entry::Anywhere(_) | Entry::On(..) | Entry::Events(_) | Entry::Options(_) => false,
        })
    }
}

fn covers(target: &str, minions: &[String], minions_of: &(impl Fn(&str) -> Option<HashSet<String>> + ?Sized)) -> bool {
    if target == "*" {
        return true;
    }
    !minions.is_empty() && minions_of(target).is_some_and(|permitted| minions.iter().all(|id| permitted.contains(id)))
}

fn entry(value: &Value) -> Option<Entry> {
    let read = match value {
        Value::Str(text) => match text.strip_prefix('@') {
            Some(OPTIONS) => Some(Entry::Options(vec![OptionRule::any()])),
            Some(scope) => Some(Entry::Calls(scope.to_owned())),
            None => Some(Entry::Anywhere(Pattern::new(text))),
        },
        Value::Map(map) if map.contains_key(EVENTS) => {
            if map.len() > 1 {
                tracing::error!(entry = %value, "an entry for events permits nothing else: write an entry for each target");
            }
            map.get(EVENTS).map(|tags| Entry::Events(globs(tags)))
        }
        Value::Map(map) if map.len() == 1 => map.iter().next().and_then(|(key, rules)| {
            let key = key.as_str()?;
            Some(match key.strip_prefix('@') {
                Some(OPTIONS) => Entry::Options(OptionRule::read(rules)),
                Some(scope) => Entry::CallsOf(scope.to_owned(), self::rules(rules)),
                None => Entry::On(key.to_owned(), self::rules(rules)),
            })
        }),
        _ => None,
    };
    if read.is_none() {
        tracing::error!(entry = %value, "an entry of an access list is invalid: expected a string or a mapping with one key");
    }
    read
}

fn one_or_many(value: &Value) -> &[Value] {
    value.as_list().unwrap_or(std::slice::from_ref(value))
}

/// Returns the globs of an `events` entry. Values other than strings permit nothing, but the entry still limits the
/// user.
fn globs(value: &Value) -> Vec<String> {
    let glob = |value: &Value| {
        if value.as_str().is_none() {
            tracing::error!(entry = %value, "a tag of an access list is invalid: expected a string");
        }
        value.as_str().map(str::to_owned)
    };
    one_or_many(value).iter().filter_map(glob).collect()
}

fn rules(value: &Value) -> Vec<Rule> {
    let rule = |value: &Value| match value {
        Value::Str(text) => vec![Rule { function: Pattern::new(text), arguments: None }],
        Value::Map(map) => {
            let rules = map.iter().filter_map(|(function, conditions)| {
                let arguments = one_or_many(conditions).iter().filter_map(arguments).collect();
                Some(Rule { function: Pattern::new(function.as_str()?), arguments: Some(arguments) })
            });
            rules.collect()
        }
        other => {
            tracing::error!(entry = %other, "a function of an access list is invalid: expected a string or a mapping");
            Vec::new()
        }
    };
    one_or_many(value).iter().flat_map(rule).collect()
}

fn arguments(value: &Value) -> Option<Arguments> {
    let map = value.as_map()?;
    let positional = map.get("args").and_then(Value::as_list).unwrap_or_default();
    let keyword = map.get("kwargs").and_then(Value::as_map);
    let keyword = keyword.into_iter().flatten().map(|(name, value)| (name.to_string(), ArgumentPattern::new(value)));
    Some(Arguments { positional: positional.iter().map(ArgumentPattern::new).collect(), keyword: keyword.collect() })
}

impl Rule {
    fn permits(&self, function: &str, positional: &[Value], keyword: &Map) -> bool {
        self.function.matches(function)
            && self.arguments.as_ref().is_none_or(|all| all.iter().any(|one| one.permit(positional, keyword)))
    }
}

impl Arguments {
    fn permit(&self, positional: &[Value], keyword: &Map) -> bool {
        let fits = |pattern: &ArgumentPattern, value: Option<&Value>| value.is_some_and(|value| pattern.permits(value));
        self.positional.iter().enumerate().all(|(at, pattern)| fits(pattern, positional.get(at)))
            && self.keyword.iter().all(|(name, pattern)| fits(pattern, keyword.get(name.as_str())))
    }
}

#[cfg(test)]
mod tests;

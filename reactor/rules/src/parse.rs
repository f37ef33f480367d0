//! Parses rules from SLS: `id: {rule.count: [{tag: ...}, ...]}`.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use brine_value::{FromValue, Map, Value};
use brine_yaml::Located;

use crate::condition::{Conditions, GroupBy, Path};
use crate::{Function, Kind, Population, Register, Rule, Rules, Test, Trigger, duration};

/// The default number of values in a register.
const DEFAULT_VALUES: usize = 1000;
const FUNCTIONS: &str = "rule.count, rule.absent, rule.sequence, rule.share, rule.when, timer.every, \
                         register.count, sum, mean, min, max, last and list";

/// An invalid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", file.display())]
pub struct RuleError {
    /// The file of the rule.
    pub file: PathBuf,
    /// The line in the rendered text, from 1.
    pub line: usize,
    /// The error, with the expected form.
    pub message: String,
}

impl Rules {
    /// Parses the rules of rendered files. Returns the valid ones, and the errors of the others.
    pub fn parse(files: &[(PathBuf, Located)]) -> (Self, Vec<RuleError>) {
        let (mut rules, mut errors): (Vec<Rule>, Vec<RuleError>) = (Vec::new(), Vec::new());
        let mut lines = Vec::new();
        for (file, located) in files {
            for (id, line, read) in read_file(located) {
                let error = |message| RuleError { file: file.clone(), line, message };
                match read {
                    Ok(rule) if rules.iter().any(|other| other.id == id) => {
                        errors.push(error(format!("duplicate rule '{}'", rule.id)));
                    }
                    Ok(rule) => {
                        rules.push(rule);
                        lines.push((file.as_path(), line));
                    }
                    Err(message) => errors.push(error(message)),
                }
            }
        }
        check_registers(&mut rules, &mut lines, &mut errors);
        match Rules::new(rules) {
            Ok(rules) => (rules, errors),
            Err(error) => {
                errors.push(RuleError { file: PathBuf::new(), line: 0, message: error.to_string() });
                (Rules { rules: Vec::new(), set: brine_text::glob::GlobSet::default(), positions: Vec::new() }, errors)
            }
        }
    }
}

/// Removes rules about unknown registers.
fn check_registers(rules: &mut Vec<Rule>, lines: &mut Vec<(&FilePath, usize)>, errors: &mut Vec<RuleError>) {
    let registers: Vec<String> =
        rules.iter().filter(|rule| matches!(rule.kind, Kind::Register { .. })).map(|rule| rule.id.clone()).collect();
    let mut index = 0;
    while index < rules.len() {
        if let Kind::When { register, .. } = &rules[index].kind
            && !registers.contains(register)
        {
            let (file, line) = lines.remove(index);
            let message = format!("'register' of '{}': unknown register '{register}'", rules[index].id);
            errors.push(RuleError { file: file.to_owned(), line, message });
            rules.remove(index);
        } else {
            index += 1;
        }
    }
}

type ParsedRule = (String, usize, Result<Rule, String>);

fn read_file(located: &Located) -> Vec<ParsedRule> {
    let line = |path: &[Value]| located.position(path).map_or(1, |position| position.line);
    let ids = match &located.value {
        Value::Nil => return Vec::new(),
        Value::Map(ids) => ids,
        other => {
            let message = format!("expected a mapping of ids to rules, got {}", other.type_name());
            return vec![(String::new(), 1, Err(message))];
        }
    };
    let mut read = Vec::new();
    for (id, body) in ids {
        let name = id.to_string();
        let Some(body) = body.as_map().filter(|body| !body.is_empty()) else {
            let message = format!(
                "the body of '{name}' is invalid: expected a function with its arguments below it: {FUNCTIONS}"
            );
            read.push((name, line(std::slice::from_ref(id)), Err(message)));
            continue;
        };
        for (function, arguments) in body {
            let at = line(&[id.clone(), function.clone()]);
            read.push((name.clone(), at, read_rule(&name, &function.to_string(), arguments)));
        }
    }
    read
}

/// The arguments of one rule. Parsing removes each, so that unknown ones are left over.
struct Arguments {
    rule: String,
    given: Map,
}

impl Arguments {
    fn read(rule: &str, arguments: &Value) -> Result<Self, String> {
        let mut named = Map::new();
        let invalid = || format!("expected a list of arguments below the function of '{rule}', such as `- within: 60`");
        match arguments {
            Value::Map(map) => named.clone_from(map),
            Value::List(items) => {
                for item in items {
                    named.extend(item.as_map().ok_or_else(invalid)?.clone());
                }
            }
            _ => return Err(invalid()),
        }
        Ok(Arguments { rule: rule.to_owned(), given: named })
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.given.shift_remove(name).filter(|value| !value.is_nil())
    }

    fn need(&mut self, name: &str) -> Result<Value, String> {
        self.take(name).ok_or_else(|| format!("'{}' needs '{name}'", self.rule))
    }

    fn invalid(&self, name: &str, reason: impl std::fmt::Display) -> String {
        format!("'{name}' of '{}': {reason}", self.rule)
    }

    fn strings(&self, name: &str, value: &Value) -> Result<Vec<String>, String> {
        let invalid = || self.invalid(name, "expected a string or a list of strings");
        match value {
            Value::Str(one) => Ok(vec![one.clone()]),
            Value::List(all) if !all.is_empty() => {
                all.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(invalid)).collect()
            }
            _ => Err(invalid()),
        }
    }

    fn time(&mut self, name: &str) -> Result<Duration, String> {
        let value = self.need(name)?;
        duration::read(&value).map_err(|error| self.invalid(name, error.to_string()))
    }

    fn count(&self, name: &str, value: &Value) -> Result<usize, String> {
        usize::from_value(value)
            .filter(|count| *count > 0)
            .ok_or_else(|| self.invalid(name, format!("expected an integer above 0, got '{value}'")))
    }

    fn by(&mut self) -> Result<GroupBy, String> {
        let Some(value) = self.take("by") else { return Ok(GroupBy::default()) };
        Ok(GroupBy(self.strings("by", &value)?.iter().map(|path| Path::new(path)).collect()))
    }

    fn conditions(&mut self, name: &str) -> Result<Conditions, String> {
        let Some(value) = self.take(name) else { return Ok(Conditions::default()) };
        Conditions::read(&value).map_err(|reason| self.invalid(name, reason))
    }

    fn trigger(&mut self, tag: &str, conditions: &str) -> Result<Trigger, String> {
        let value = self.need(tag)?;
        Ok(Trigger { tags: self.strings(tag, &value)?, conditions: self.conditions(conditions)? })
    }

    /// Parses a trigger of a sequence: a glob, or a mapping with `tag` and `where`.
    fn step(&self, value: &Value) -> Result<Trigger, String> {
        match value {
            Value::Map(map) => Arguments { rule: self.rule.clone(), given: map.clone() }.trigger("tag", "where"),
            tag => Ok(Trigger { tags: self.strings("tags", tag)?, conditions: Conditions::default() }),
        }
    }

    fn number(&self, name: &str, value: &Value) -> Result<f64, String> {
        f64::from_value(value).ok_or_else(|| self.invalid(name, "expected a number"))
    }
}

fn read_rule(id: &str, function: &str, arguments: &Value) -> Result<Rule, String> {
    let mut arguments = Arguments::read(id, arguments)?;
    let fingerprint = format!("{function} {}", Value::Map(arguments.given.clone()));
    let (kind, triggers) = kind(function, &mut arguments)?;
    let react = match arguments.take("react") {
        Some(files) => arguments.strings("react", &files)?,
        None if matches!(kind, Kind::Register { .. }) => Vec::new(),
        None => return Err(format!("'{id}' needs 'react': the path of an SLS file, or a list of them")),
    };
    if let Some((name, _)) = arguments.given.first() {
        return Err(format!("'{name}' is not an argument of {function}, in '{id}'"));
    }
    Ok(Rule { id: id.to_owned(), fingerprint, react, kind, triggers })
}

fn kind(function: &str, arguments: &mut Arguments) -> Result<(Kind, Vec<Trigger>), String> {
    Ok(match function {
        "rule.count" => {
            let trigger = arguments.trigger("tag", "where")?;
            let count = arguments.need("count")?;
            let count = arguments.count("count", &count)?;
            (Kind::Count { by: arguments.by()?, count, within: arguments.time("within")? }, vec![trigger])
        }
        "rule.absent" => {
            let triggers = vec![arguments.trigger("after", "where")?, arguments.trigger("expect", "expect_where")?];
            let each = arguments.take("each").map(|path| Path::new(&path.to_string()));
            (Kind::Absent { each, by: arguments.by()?, within: arguments.time("within")? }, triggers)
        }
        "rule.sequence" => {
            let tags = arguments.need("tags")?;
            let steps = tags.as_list().filter(|steps| steps.len() > 1);
            let steps = steps.ok_or_else(|| arguments.invalid("tags", "expected a list of two or more"))?;
            let triggers = steps.iter().map(|step| arguments.step(step)).collect::<Result<_, _>>()?;
            (Kind::Sequence { by: arguments.by()?, within: arguments.time("within")? }, triggers)
        }
        "rule.share" => {
            let trigger = arguments.trigger("tag", "where")?;
            let of = arguments.need("of")?;
            let whole = match (of.get("nodegroup"), of.get("count")) {
                (Some(name), None) => Population::Nodegroup(name.to_string()),
                (None, Some(count)) => Population::Count(arguments.count("of", count)?),
                _ => return Err(arguments.invalid("of", "expected {nodegroup: name} or {count: number}")),
            };
            let above = arguments.need("above")?;
            let above =
                share(&above).ok_or_else(|| arguments.invalid("above", "expected a share such as 10% or 0.1"))?;
            let by = match arguments.by()? {
                GroupBy(paths) if paths.is_empty() => GroupBy(vec![Path::new("id")]),
                by => by,
            };
            (Kind::Share { by, whole, above, within: arguments.time("within")? }, vec![trigger])
        }
        "rule.when" => {
            let register = arguments.need("register")?.to_string();
            let tests = ["above", "below", "equal"].map(|name| arguments.take(name).map(|value| (name, value)));
            let test = match tests.into_iter().flatten().collect::<Vec<_>>().as_slice() {
                [("above", value)] => Test::Above(arguments.number("above", value)?),
                [("below", value)] => Test::Below(arguments.number("below", value)?),
                [("equal", value)] => Test::Equal(arguments.number("equal", value)?),
                _ => return Err(format!("'{}' needs one of 'above', 'below' and 'equal'", arguments.rule)),
            };
            (Kind::When { register, test }, Vec::new())
        }
        "timer.every" => (Kind::Every { pause: arguments.time("seconds")? }, Vec::new()),
        other => {
            let function = match other.strip_prefix("register.") {
                Some("count") => Function::Count,
                Some("sum") => Function::Sum,
                Some("mean") => Function::Mean,
                Some("min") => Function::Min,
                Some("max") => Function::Max,
                Some("last") => Function::Last,
                Some("list") => Function::List,
                _ => {
                    return Err(format!(
                        "'{other}' in '{}' is not a rule: expected one of {FUNCTIONS}",
                        arguments.rule
                    ));
                }
            };
            let trigger = arguments.trigger("tag", "where")?;
            let value = match (arguments.take("value"), function) {
                (Some(path), _) => Path::new(&path.to_string()),
                (None, Function::Count) => Path::Tag(0),
                (None, _) => {
                    return Err(format!("'{}' needs 'value': the path of the collected value", arguments.rule));
                }
            };
            let window = arguments.take("window").map(|window| duration::read(&window));
            let window = window.transpose().map_err(|error| arguments.invalid("window", error.to_string()))?;
            let last = arguments.take("last").map(|last| arguments.count("last", &last)).transpose()?;
            let last = last.unwrap_or(if function == Function::Last { 1 } else { DEFAULT_VALUES });
            (
                Kind::Register { by: arguments.by()?, register: Register { function, value, window, last } },
                vec![trigger],
            )
        }
    })
}

/// Parses `10%` or `0.1`.
fn share(value: &Value) -> Option<f64> {
    let share = match value.as_str() {
        Some(text) => text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0,
        None => value.as_f64()?,
    };
    (0.0..1.0).contains(&share).then_some(share)
}

//! `match`: whether a target matches this minion.

use brine_context::{Context, MinionFacts, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_target::{DEFAULT_DELIMITER, Match, Target, TargetFacts, TargetKind};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, merge_deep};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `match`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "match",
    [
        compound,
        glob,
        list,
        pcre,
        grain,
        grain_pcre,
        pillar,
        pillar_pcre,
        pillar_exact,
        ipcidr,
        data,
        filter_by,
        ifelse,
        search_by
    ]
);

/// Return whether a compound target matches this minion, or the id `minion_id`; grains and pillar are those of this
/// minion.
///
/// CLI Example:
///
///     salt '*' match.compound 'L@cheese,foo and *'
#[function]
pub fn compound(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Id of the minion; that of this one by default.
    minion_id: Option<String>,
) -> CallResult {
    Ok(matches_id(context, TargetKind::Compound, tgt, minion_id).into())
}

/// Return whether a glob matches this minion's id, or `minion_id`.
///
/// CLI Example:
///
///     salt '*' match.glob '*'
#[function]
pub fn glob(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Id of the minion; that of this one by default.
    minion_id: Option<String>,
) -> CallResult {
    Ok(matches_id(context, TargetKind::Glob, tgt, minion_id).into())
}

/// Return whether a list contains this minion's id, or `minion_id`.
///
/// CLI Example:
///
///     salt '*' match.list 'server1,server2'
#[function]
pub fn list(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Id of the minion; that of this one by default.
    minion_id: Option<String>,
) -> CallResult {
    Ok(matches_id(context, TargetKind::List, tgt, minion_id).into())
}

/// Return whether a regular expression matches this minion's id, or `minion_id`.
///
/// CLI Example:
///
///     salt '*' match.pcre '.*'
#[function]
pub fn pcre(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Id of the minion; that of this one by default.
    minion_id: Option<String>,
) -> CallResult {
    Ok(matches_id(context, TargetKind::Pcre, tgt, minion_id).into())
}

/// Return whether this minion has a grain that matches a glob.
///
/// CLI Example:
///
///     salt '*' match.grain 'os:Ubuntu'
#[function]
pub fn grain(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Separator of the keys in the target.
    #[default(DEFAULT_DELIMITER.into())]
    delimiter: String,
) -> CallResult {
    Ok(matches(context, TargetKind::Grain, tgt, &delimiter).into())
}

/// Return whether this minion has a grain that matches a regular expression.
///
/// CLI Example:
///
///     salt '*' match.grain_pcre 'os:Fedo.*'
#[function]
pub fn grain_pcre(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Separator of the keys in the target.
    #[default(DEFAULT_DELIMITER.into())]
    delimiter: String,
) -> CallResult {
    Ok(matches(context, TargetKind::GrainPcre, tgt, &delimiter).into())
}

/// Return whether this minion has a pillar value that matches a glob.
///
/// CLI Example:
///
///     salt '*' match.pillar 'cheese:foo'
#[function]
pub fn pillar(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Separator of the keys in the target.
    #[default(DEFAULT_DELIMITER.into())]
    delimiter: String,
) -> CallResult {
    Ok(matches(context, TargetKind::Pillar, tgt, &delimiter).into())
}

/// Return whether this minion has a pillar value that matches a regular expression.
///
/// CLI Example:
///
///     salt '*' match.pillar_pcre 'cheese:(foo|bar)'
#[function]
pub fn pillar_pcre(
    context: &Context,
    /// Target.
    tgt: Value,
    /// Separator of the keys in the target.
    #[default(DEFAULT_DELIMITER.into())]
    delimiter: String,
) -> CallResult {
    Ok(matches(context, TargetKind::PillarPcre, tgt, &delimiter).into())
}

/// Return whether this minion has exactly this pillar value.
///
/// CLI Example:
///
///     salt '*' match.pillar_exact 'cheese:foo'
#[function]
pub fn pillar_exact(
    context: &Context,
    /// Path in the pillar and the value, such as `role:web`.
    tgt: Value,
    /// Separator of the parts of the path.
    #[default(DEFAULT_DELIMITER.into())]
    delimiter: String,
) -> CallResult {
    Ok(matches(context, TargetKind::PillarExact, tgt, &delimiter).into())
}

/// Return whether this minion has an address in a network.
///
/// CLI Example:
///
///     salt '*' match.ipcidr '192.168.44.0/24'
#[function]
pub fn ipcidr(
    context: &Context,
    /// Target.
    tgt: Value,
) -> CallResult {
    Ok(matches(context, TargetKind::IpCidr, tgt, DEFAULT_DELIMITER).into())
}

/// Return whether a stored value (see `data.get`) matches: a string, or an item of a list, by a glob; a mapping by the
/// name of a key.
///
/// CLI Example:
///
///     salt '*' match.data 'spam:eggs'
#[function]
pub fn data(
    context: &Context,
    /// Target.
    tgt: String,
) -> CallResult {
    if let Some(matched) = MinionFacts::of(context).custom_match("data", &tgt.as_str().into(), DEFAULT_DELIMITER) {
        return Ok((matched == Match::Yes).into());
    }
    let Some((key, pattern)) = tgt.split_once(':') else { return Ok(false.into()) };
    let pattern = pattern.split(':').next().unwrap_or_default();
    let stored = context.call("data.get", Args::positional([key.into()]))?;
    let is_match = match &stored {
        Value::Nil => false,
        Value::List(list) => list.iter().any(|item| fnmatch(&pattern.to_lowercase(), &item.to_string().to_lowercase())),
        Value::Map(map) => map.contains_key(&Value::from(pattern)),
        value => fnmatch(pattern, &value.to_string()),
    };
    Ok(is_match.into())
}

/// Return the value of the first key, a compound target, that matches this minion.
///
/// CLI Example:
///
///     salt '*' match.filter_by '{foo*: Foo!, bar*: Bar!}' minion_id=bar03
#[function]
pub fn filter_by(
    context: &Context,
    /// Values by target.
    lookup: Map,
    /// Type of the targets.
    #[default("compound".into())]
    tgt_type: String,
    /// Minion id to match instead of this minion's; grains, pillar and addresses are those of this minion.
    minion_id: Option<String>,
    /// Mapping that is merged over a value found by its target, but not over the default.
    #[default]
    merge: Value,
    /// Whether merged lists are joined instead of replaced.
    #[default(false)]
    merge_lists: bool,
    /// Key of the value that is returned if no target matches.
    #[default("default".into())]
    default: Value,
) -> CallResult {
    let matcher: Matcher = tgt_type.parse().map_err(CallError::execution)?;
    for (target, value) in &lookup {
        if matcher.matches(context, target, minion_id.as_deref())? {
            return merged(value.clone(), &merge, merge_lists);
        }
    }
    Ok(lookup.get(&default).cloned().unwrap_or_default())
}

/// Return the value after the first of several targets that matches this minion, or the last argument, which has no
/// target. `tgt_type`, `minion_id`, `merge` and `merge_lists` are those of `match.filter_by`.
///
/// CLI Example:
///
///     salt '*' match.ifelse 'foo*' 'Foo!' 'bar*' 'Bar!' 'Neither' minion_id=bar03
#[function]
pub fn ifelse(
    context: &Context,
    /// Targets, or True or False, each followed by its value, and at the end the value if none matches.
    #[rest]
    args: Vec<Value>,
    /// `tgt_type` (`compound`), `minion_id`, `merge` and `merge_lists`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let Some((otherwise, pairs)) = args.split_last().filter(|(_, pairs)| pairs.len() % 2 == 0) else {
        return Err(CallError::Execution("The ifelse function must have an odd number of arguments!".into()));
    };
    let kind = kwargs.get("tgt_type").map_or_else(|| "compound".to_owned(), ToString::to_string);
    let matcher: Matcher = kind.parse().map_err(CallError::execution)?;
    let minion_id = kwargs.get("minion_id").filter(|id| id.is_truthy()).map(ToString::to_string);
    for pair in pairs.chunks_exact(2) {
        let is_match = match &pair[0] {
            Value::Bool(answer) => *answer,
            target => matcher.matches(context, target, minion_id.as_deref())?,
        };
        if is_match {
            let merge_lists = kwargs.get("merge_lists").is_some_and(Value::is_truthy);
            return merged(pair[1].clone(), kwargs.get("merge").unwrap_or(&Value::Nil), merge_lists);
        }
    }
    Ok(otherwise.clone())
}

/// Return the keys with a target in their list that matches this minion, once for each such target.
///
/// CLI Example:
///
///     salt '*' match.search_by '{web: [node1, node2], db: [node*]}'
#[function]
pub fn search_by(
    context: &Context,
    /// Lists of targets by key.
    lookup: Map,
    /// Type of the targets.
    #[default("compound".into())]
    tgt_type: String,
    /// Minion id to match instead of this minion's; grains, pillar and addresses are those of this minion.
    minion_id: Option<String>,
) -> CallResult {
    let matcher: Matcher = tgt_type.parse().map_err(CallError::execution)?;
    let mut keys: Vec<Value> = Vec::new();
    for (key, targets) in &lookup {
        for target in targets.as_list().unwrap_or(std::slice::from_ref(targets)) {
            if matcher.matches(context, target, minion_id.as_deref())? {
                keys.push(key.clone());
            }
        }
    }
    Ok(if keys.is_empty() { Value::Nil } else { keys.into() })
}

/// Merges a mapping over a value; null is replaced by it. An empty `merge` leaves the value unchanged.
fn merged(value: Value, merge: &Value, merge_lists: bool) -> CallResult {
    if !merge.is_truthy() {
        return Ok(value);
    }
    let Value::Map(over) = merge else {
        return Err(CallError::Execution("filter_by merge argument must be a dictionary.".into()));
    };
    match value {
        Value::Nil => Ok(merge.clone()),
        Value::Map(mut value) => {
            merge_deep(&mut value, over, merge_lists);
            Ok(value.into())
        }
        other => Err(CallError::Execution(format!("merge failed: the matched value '{other}' is not a mapping"))),
    }
}

/// The type of the targets of `filter_by`, `ifelse` and `search_by`.
#[derive(Debug, Clone, Copy)]
enum Matcher {
    /// A target of a job.
    Target(TargetKind),
    /// A stored value, which only `match` can match.
    Data,
}

impl std::str::FromStr for Matcher {
    type Err = <TargetKind as std::str::FromStr>::Err;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "data" { Ok(Matcher::Data) } else { name.parse().map(Matcher::Target) }
    }
}

impl Matcher {
    /// Whether a target matches this minion, or the id `minion_id`.
    fn matches(self, context: &Context, target: &Value, minion_id: Option<&str>) -> Result<bool, CallError> {
        match self {
            Matcher::Target(kind) => Ok(matches_id(context, kind, target.clone(), minion_id.map(str::to_owned))),
            Matcher::Data => data(context, target.to_string()).map(|matched| matched.is_truthy()),
        }
    }
}

/// Matches a target as [`matches`] does, with a given minion id. An empty id is that of this minion, as in Salt.
fn matches_id(context: &Context, kind: TargetKind, target: Value, minion_id: Option<String>) -> bool {
    let facts = MinionFacts::of(context);
    let facts = match minion_id.filter(|id| !id.is_empty()) {
        Some(id) => facts.with_id(id),
        None => facts,
    };
    check(context, &facts, kind, target, DEFAULT_DELIMITER)
}

/// Matches a target, by a custom matcher if there is one for its type. An invalid target matches no minion, as in Salt.
fn matches(context: &Context, kind: TargetKind, target: Value, delimiter: &str) -> bool {
    check(context, &MinionFacts::of(context), kind, target, delimiter)
}

fn check(context: &Context, facts: &MinionFacts, kind: TargetKind, target: Value, delimiter: &str) -> bool {
    if let Some(matched) = facts.custom_match(kind.name(), &target, delimiter) {
        return matched == Match::Yes;
    }
    match Target::parse(kind, target, delimiter, &context.config().nodegroups) {
        Ok(target) => target.matches(facts),
        Err(error) => {
            tracing::debug!(%error, "target is invalid");
            false
        }
    }
}

#[cfg(test)]
mod tests;

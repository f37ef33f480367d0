//! `match`: whether a target matches this minion.

use brine_context::{Context, Module, OwnFacts};
use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_target::{DEFAULT_DELIMITER, Facts, Match, Target, TargetKind};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, merge_deep};

pub(super) static MODULE: Module = Module { functions: &[FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `match`.
pub static FUNCTIONS: &[Function<Context>] = registry!(
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

/// Return whether a compound target matches this minion.
///
/// CLI Example:
///
///     salt '*' match.compound 'L@cheese,foo and *'
#[function]
pub fn compound(context: &Context, tgt: Value) -> CallResult {
    Ok(matches(context, TargetKind::Compound, tgt, DEFAULT_DELIMITER).into())
}

/// Return whether a glob matches this minion's id.
///
/// CLI Example:
///
///     salt '*' match.glob '*'
#[function]
pub fn glob(context: &Context, tgt: Value) -> CallResult {
    Ok(matches(context, TargetKind::Glob, tgt, DEFAULT_DELIMITER).into())
}

/// Return whether a list contains this minion's id.
///
/// CLI Example:
///
///     salt '*' match.list 'server1,server2'
#[function]
pub fn list(context: &Context, tgt: Value) -> CallResult {
    Ok(matches(context, TargetKind::List, tgt, DEFAULT_DELIMITER).into())
}

/// Return whether a regular expression matches this minion's id.
///
/// CLI Example:
///
///     salt '*' match.pcre '.*'
#[function]
pub fn pcre(context: &Context, tgt: Value) -> CallResult {
    Ok(matches(context, TargetKind::Pcre, tgt, DEFAULT_DELIMITER).into())
}

/// Return whether this minion has a grain that matches a glob.
///
/// CLI Example:
///
///     salt '*' match.grain 'os:Ubuntu'
#[function]
pub fn grain(context: &Context, tgt: Value, #[default(DEFAULT_DELIMITER.into())] delimiter: String) -> CallResult {
    Ok(matches(context, TargetKind::Grain, tgt, &delimiter).into())
}

/// Return whether this minion has a grain that matches a regular expression.
///
/// CLI Example:
///
///     salt '*' match.grain_pcre 'os:Fedo.*'
#[function]
pub fn grain_pcre(context: &Context, tgt: Value, #[default(DEFAULT_DELIMITER.into())] delimiter: String) -> CallResult {
    Ok(matches(context, TargetKind::GrainPcre, tgt, &delimiter).into())
}

/// Return whether this minion has a pillar value that matches a glob.
///
/// CLI Example:
///
///     salt '*' match.pillar 'cheese:foo'
#[function]
pub fn pillar(context: &Context, tgt: Value, #[default(DEFAULT_DELIMITER.into())] delimiter: String) -> CallResult {
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
    tgt: Value,
    #[default(DEFAULT_DELIMITER.into())] delimiter: String,
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
    tgt: Value,
    #[default(DEFAULT_DELIMITER.into())] delimiter: String,
) -> CallResult {
    Ok(matches(context, TargetKind::PillarExact, tgt, &delimiter).into())
}

/// Return whether this minion has an address in a network.
///
/// CLI Example:
///
///     salt '*' match.ipcidr '192.168.44.0/24'
#[function]
pub fn ipcidr(context: &Context, tgt: Value) -> CallResult {
    Ok(matches(context, TargetKind::IpCidr, tgt, DEFAULT_DELIMITER).into())
}

/// Return whether a stored value (see `data.get`) matches: a string, or an item of a list, by a glob; a mapping by the
/// name of a key.
///
/// CLI Example:
///
///     salt '*' match.data 'spam:eggs'
#[function]
pub fn data(context: &Context, tgt: String) -> CallResult {
    if let Some(matched) = OwnFacts::of(context).own_match("data", &tgt.as_str().into(), DEFAULT_DELIMITER) {
        return Ok((matched == Match::Yes).into());
    }
    let Some((key, wanted)) = tgt.split_once(':') else { return Ok(false.into()) };
    let wanted = wanted.split(':').next().unwrap_or_default();
    let stored = context.call("data.get", Args::positional([key.into()]))?;
    let is_match = match &stored {
        Value::Nil => false,
        Value::List(list) => list.iter().any(|item| fnmatch(&wanted.to_lowercase(), &item.to_string().to_lowercase())),
        Value::Map(map) => map.contains_key(&Value::from(wanted)),
        value => fnmatch(wanted, &value.to_string()),
    };
    Ok(is_match.into())
}

/// Return the value of the first key, a compound target, that matches this minion.
///
/// CLI Example:
///
///     salt '*' match.filter_by '{foo*: Foo!, bar*: Bar!}'
#[function]
pub fn filter_by(
    context: &Context,
    lookup: Map,
    #[default("compound".into())] tgt_type: String,
    #[default("default".into())] default: Value,
) -> CallResult {
    let kind: TargetKind = tgt_type.parse().map_err(CallError::execution)?;
    let found = lookup.iter().find(|(target, _)| matches(context, kind, (*target).clone(), DEFAULT_DELIMITER));
    Ok(found.map(|(_, value)| value).or_else(|| lookup.get(&default)).cloned().unwrap_or_default())
}

/// Return the value after the first of several targets that matches this minion, or the last argument, which has no
/// target.
///
/// CLI Example:
///
///     salt '*' match.ifelse 'foo*' 'Foo!' 'bar*' 'Bar!' minion_id=bar03 'Neither'
#[function]
pub fn ifelse(context: &Context, #[rest] args: Vec<Value>, #[keywords] kwargs: Map) -> CallResult {
    let Some((otherwise, pairs)) = args.split_last().filter(|(_, pairs)| pairs.len() % 2 == 0) else {
        return Err(CallError::Execution("The ifelse function must have an odd number of arguments!".into()));
    };
    let kind = kwargs.get("tgt_type").map_or_else(|| "compound".to_owned(), ToString::to_string);
    let kind: TargetKind = kind.parse().map_err(CallError::execution)?;
    let means = |target: &Value| match target {
        Value::Bool(answer) => *answer,
        target => matches(context, kind, target.clone(), DEFAULT_DELIMITER),
    };
    let found = pairs.chunks_exact(2).find(|pair| means(&pair[0])).map_or(otherwise, |pair| &pair[1]);
    let merge_lists = kwargs.get("merge_lists").is_some_and(Value::is_truthy);
    Ok(match (found.clone(), kwargs.get("merge")) {
        (Value::Map(mut found), Some(Value::Map(over))) => {
            merge_deep(&mut found, over, merge_lists);
            found.into()
        }
        (found, _) => found,
    })
}

/// Return the keys with a target in their list that matches this minion.
///
/// CLI Example:
///
///     salt '*' match.search_by '{web: [node1, node2], db: [node*]}'
#[function]
pub fn search_by(context: &Context, lookup: Map, #[default("compound".into())] tgt_type: String) -> CallResult {
    let kind: TargetKind = tgt_type.parse().map_err(CallError::execution)?;
    let found = lookup.iter().filter(|(_, targets)| {
        let single = [(*targets).clone()];
        targets
            .as_list()
            .unwrap_or(&single)
            .iter()
            .any(|target| matches(context, kind, target.clone(), DEFAULT_DELIMITER))
    });
    let keys: Vec<Value> = found.map(|(key, _)| key.clone()).collect();
    Ok(if keys.is_empty() { Value::Nil } else { keys.into() })
}

/// Matches a target, by a custom matcher if there is one for its type. An invalid target matches no minion, as in Salt.
fn matches(context: &Context, kind: TargetKind, target: Value, delimiter: &str) -> bool {
    let facts = OwnFacts::of(context);
    if let Some(matched) = facts.own_match(kind.name(), &target, delimiter) {
        return matched == Match::Yes;
    }
    match Target::parse(kind, target, delimiter, &context.config().nodegroups) {
        Ok(target) => target.matches(&facts),
        Err(error) => {
            tracing::debug!(%error, "target is invalid");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;
    use crate::testing;

    #[test]
    fn targets_match_this_minion_or_not() {
        let context = testing::context(&[]);
        for (fun, target, value) in [
            ("glob", "test-*".into(), true.into()),
            ("glob", "web*".into(), false.into()),
            ("list", "a,test-minion".into(), true.into()),
            ("pcre", "test-m.n".into(), true.into()),
            ("grain", "os:Deb*".into(), true.into()),
            ("grain_pcre", "os:^Ub".into(), false.into()),
            ("pillar", "secret:word:xyzzy".into(), true.into()),
            ("pillar_pcre", "secret:word:xy.*".into(), true.into()),
            ("pillar_exact", "secret:word:xyz*".into(), false.into()),
            ("compound", "G@os:Debian and not web*".into(), true.into()),
            ("compound", "and and".into(), false.into()),
            ("filter_by", Value::from(map! {"web*" => 1, "test*" => 2}), 2.into()),
            ("filter_by", map! {"web*" => 1, "default" => 3}.into(), 3.into()),
            ("search_by", map! {"a" => list!["web*", "test*"], "b" => "db*"}.into(), list!["a"]),
        ] {
            let args = Args::positional([target]);
            assert_eq!(context.call(&format!("match.{fun}"), args.clone()), Ok(value), "{fun} {args:?}");
        }
    }

    #[test]
    fn stored_values_match_globs_items_and_keys() {
        let directory = tempfile::tempdir().unwrap();
        let mut minion = testing::minion(&[]);
        let cachedir = directory.path().to_owned();
        let config = brine_config::MinionConfig { cachedir, ..Default::default() };
        std::sync::Arc::get_mut(&mut minion).unwrap().config = std::sync::Arc::new(config);
        let context = testing::context_of(minion);
        let stored = map! {"word" => "Spam", "list" => list!["Eggs", 5], "map" => map! {"a" => 1}};
        context.call("data.dump", Args::positional([stored.into()])).unwrap();
        for (target, expected) in [
            ("word:Sp*", true),
            ("word:sp*", false),
            ("list:e*", true),
            ("list:5", true),
            ("list:6", false),
            ("map:a:more", true),
            ("map:b", false),
            ("none:*", false),
            ("word", false),
        ] {
            assert_eq!(context.call("match.data", Args::positional([target.into()])), Ok(expected.into()), "{target}");
        }
    }

    #[test]
    fn the_first_matching_target_wins() {
        let context = testing::context(&[]);
        for (args, keyword, expected) in [
            (list!["foo*", "Foo!", "test*", "Bar!", "Baz!"], map! {}, Ok("Bar!".into())),
            (list![false, "Foo!", true, "Bar!", "Baz!"], map! {}, Ok("Bar!".into())),
            (list!["z", "Foo!", "Baz!"], map! {}, Ok("Baz!".into())),
            (list!["z"], map! {}, Ok("z".into())),
            (list!["*", map! {"a" => 1}, "x"], map! {"merge" => map! {"b" => 2}}, Ok(map! {"a" => 1, "b" => 2}.into())),
            (
                list!["z", "Foo!"],
                map! {},
                Err("ERROR: The ifelse function must have an odd number of arguments!".to_owned()),
            ),
        ] {
            let called = Args { positional: args.as_list().unwrap().to_vec(), keyword };
            let found = context.call("match.ifelse", called).map_err(|error| error.to_string());
            assert_eq!(found, expected, "{args}");
        }
    }
}

//! Resolves names that begin with a dot: SLS files relative to the own one, and ids of the own SLS.

use brine_value::{Map, Value, map};

use super::super::RenderError;
use super::{MODULE, failed, module};

/// The requisites of a state, in both directions.
const REQUISITES: [&str; 12] = [
    "require",
    "require_in",
    "watch",
    "watch_in",
    "use",
    "use_in",
    "listen",
    "listen_in",
    "onchanges",
    "onchanges_in",
    "onfail",
    "onfail_in",
];

/// Makes the names in `include` and `exclude` absolute.
pub(super) fn includes(data: &mut Map, sls: &str, saltenv: &str) -> Result<(), RenderError> {
    if let Some(Value::List(names)) = data.get_mut("include") {
        for name in names {
            let (environment, included) = match &*name {
                Value::Map(one) => match one.first() {
                    Some((environment, included)) => (environment.clone(), included.clone()),
                    None => continue,
                },
                plain => (saltenv.into(), plain.clone()),
            };
            if let Some(relative) = included.as_str().filter(|name| name.starts_with('.')) {
                *name = map! {environment => absolute(relative, sls)?}.into();
            }
        }
    }
    if let Some(Value::List(excluded)) = data.get_mut("exclude") {
        for one in excluded {
            let Value::Map(one) = one else { continue };
            if let Some(name) = one.get_mut("sls")
                && let Some(relative) = name.as_str().filter(|name| name.starts_with('.'))
            {
                *name = absolute(relative, sls)?.into();
            }
        }
    }
    Ok(())
}

/// Renames the ids that begin with a dot, and the references to them: `.params` of `web.nginx` becomes
/// `web.nginx::params`. The name of a state without `name` is the id without its dot.
pub(super) fn ids(data: &mut Map, sls: &str) -> Result<(), RenderError> {
    if let Some(Value::Map(extended)) = data.get_mut("extend") {
        ids(extended, sls)?;
    }
    for (_, states) in data.iter_mut().filter(|(id, _)| id.as_str() != Some("extend")) {
        let Value::Map(states) = states else { continue };
        for args in states.values_mut() {
            requisites(args, sls)?;
        }
    }
    let local: Vec<Value> =
        data.keys().filter(|id| id.as_str().is_some_and(|id| id.starts_with('.'))).cloned().collect();
    for id in local {
        let Some(short) = id.as_str() else { continue };
        let renamed = absolute_id(short, sls)?;
        if data.contains_key(renamed.as_str()) {
            return Err(failed(format!("the id {short:?} cannot become {renamed:?}: the SLS has that id")));
        }
        // Renamed ids come after the others, as in Salt.
        let Some(mut states) = data.shift_remove(&id) else { continue };
        if let Value::Map(states) = &mut states {
            for (function, args) in states {
                let is_named = |args: &[Value]| args.iter().any(|arg| first_key(arg) == Some("name"));
                if let Value::List(args) = args
                    && function.as_str().is_some_and(|function| module(function) != MODULE)
                    && !is_named(args)
                {
                    args.insert(0, map! {"name" => &short[1..]}.into());
                }
            }
        }
        data.insert(renamed.into(), states);
    }
    Ok(())
}

fn first_key(arg: &Value) -> Option<&str> {
    arg.as_map()?.first()?.0.as_str()
}

fn requisites(args: &mut Value, sls: &str) -> Result<(), RenderError> {
    let Value::List(args) = args else { return Ok(()) };
    for arg in args {
        let Value::Map(arg) = arg else { continue };
        let Some((name, Value::List(required))) = arg.first_mut() else { continue };
        if !name.as_str().is_some_and(|name| REQUISITES.contains(&name)) {
            continue;
        }
        for one in required {
            let Value::Map(one) = one else { continue };
            let Some((_, id)) = one.first_mut() else { continue };
            if let Some(local) = id.as_str().filter(|id| id.starts_with('.')) {
                *id = absolute_id(local, sls)?.into();
            }
        }
    }
    Ok(())
}

/// Returns the full name of an id that begins with a dot: `.x` is of the own SLS, `.other::x` of one beside it.
fn absolute_id(id: &str, sls: &str) -> Result<String, RenderError> {
    if id.contains("::") {
        return absolute(id, sls);
    }
    let full = absolute(id, &format!("{sls}."))?;
    Ok(match full.rsplit_once('.') {
        Some((above, own)) => format!("{above}::{own}"),
        None => full,
    })
}

/// Returns the full name of an SLS that is named relative to another one.
fn absolute(relative: &str, sls: &str) -> Result<String, RenderError> {
    let name = relative.trim_start_matches('.');
    let levels = relative.len() - name.len();
    let parts: Vec<&str> = sls.split('.').collect();
    let Some(above) = parts.len().checked_sub(levels) else {
        return Err(failed(format!("the name {relative:?} goes beyond the top directory from the SLS {sls:?}")));
    };
    let mut parts = parts[..above].to_vec();
    parts.push(name);
    Ok(parts.join("."))
}

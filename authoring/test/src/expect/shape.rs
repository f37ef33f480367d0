//! Low chunks in the form of an SLS file: `{id: {module.function: [arguments]}}`.

use brine_sls::compile::Chunk;
use brine_value::{Map, Value};

/// Returns a chunk as an SLS file has it: its arguments without the name if that is the id, and without those of the
/// compiler.
pub fn chunk_as_sls(chunk: &Chunk) -> Value {
    let mut arguments = Map::new();
    if chunk.name != chunk.id {
        arguments.insert("name".into(), chunk.name.as_str().into());
    }
    let own = |key: &Value| key.as_str().is_some_and(|key| key == "order" || key.starts_with("__"));
    arguments.extend(chunk.args.iter().filter(|(key, _)| !own(key)).map(|(key, value)| (key.clone(), value.clone())));
    state(&chunk.id, &format!("{}.{}", chunk.state, chunk.fun), arguments)
}

fn state(id: &str, function: &str, arguments: Map) -> Value {
    let one = |key: Value, value: Value| Value::Map([(key, value)].into_iter().collect());
    let listed: Value = arguments.into_iter().map(|(key, value)| one(key, value)).collect();
    one(id.into(), one(function.into(), listed))
}

/// Returns an expected state in the form of [`chunk_as_sls`], with its id and its function. The state may be written with
/// a mapping of arguments, without arguments, or as `module: [function, arguments]`.
pub fn expected_state(written: &Value) -> Option<(String, String, Map)> {
    let (id, body) = written.as_map()?.first()?;
    let (id, (name, arguments)) = (
        id.to_string(),
        match body {
            Value::Str(function) => (function.clone(), &Value::Nil),
            Value::Map(body) => body.first().map(|(name, arguments)| (name.to_string(), arguments))?,
            _ => return None,
        },
    );
    let (mut function, mut all) = (name, Map::new());
    match arguments {
        Value::Map(map) => all.extend(map.clone()),
        Value::List(items) => {
            for item in items {
                match item {
                    Value::Map(map) => all.extend(map.clone()),
                    Value::Str(word) if !function.contains('.') => function = format!("{function}.{word}"),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    if all.get("name").is_some_and(|name| name.to_string() == id) {
        all.shift_remove("name");
    }
    Some((id, function, all))
}

/// Returns an expected state as it is shown.
pub fn shown(id: &str, function: &str, arguments: &Map) -> Value {
    state(id, function, arguments.clone())
}

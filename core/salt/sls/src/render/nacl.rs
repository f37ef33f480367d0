//! The renderer `nacl`, and `decrypt_pillar` with it: decrypts the strings of the form `NACL[...]` in data, as `nacl.enc` encrypts them.

use brine_function::Args;
use brine_jinja::{Host, Role};
use brine_value::Value;

use super::RenderError;

/// Decrypts all boxes in a value, at every depth. Keys of mappings are not decrypted.
///
/// # Errors
/// The host cannot open boxes, or a box cannot be opened.
pub(crate) fn decrypt(value: &mut Value, host: &Host) -> Result<(), RenderError> {
    match value {
        Value::Map(map) => map.values_mut().try_for_each(|value| decrypt(value, host)),
        Value::List(items) => items.iter_mut().try_for_each(|item| decrypt(item, host)),
        other => {
            if let Some(content) = other.as_str().and_then(content) {
                *other = open(content, host)?;
            }
            Ok(())
        }
    }
}

/// Whether a value contains a box, at any depth.
pub(crate) fn contains_box(value: &Value) -> bool {
    match value {
        Value::Map(map) => map.values().any(contains_box),
        Value::List(items) => items.iter().any(contains_box),
        other => other.as_str().is_some_and(|text| content(text).is_some()),
    }
}

/// Returns the text in the brackets of a box. Like the pattern of Salt, it is one line; a newline may follow.
fn content(text: &str) -> Option<&str> {
    let content = text.strip_suffix('\n').unwrap_or(text).strip_prefix("NACL[")?.strip_suffix(']')?;
    (!content.contains('\n')).then_some(content)
}

fn open(content: &str, host: &Host) -> Result<Value, RenderError> {
    let function = host.name_of(Role::OpenBox);
    let function = function.ok_or_else(|| RenderError::Nacl("boxes cannot be opened here".to_owned()))?;
    host.call(function, Args::positional([content.into()])).map_err(|error| RenderError::Nacl(error.message()))
}

#[cfg(test)]
mod tests {
    use super::super::{RenderContext, render_sls};
    use super::*;
    use brine_function::CallError;
    use brine_jinja::Functions;
    use brine_value::{Map, list, map};

    /// Opens all boxes but one.
    struct Key;

    impl Functions for Key {
        fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
            assert_eq!(function, "nacl.dec");
            match args.positional[0].as_str() {
                Some("wrong") => Err(CallError::execution("decrypting the data failed")),
                text => Ok(format!("open {}", text.unwrap()).into()),
            }
        }

        fn has(&self, function: &str) -> bool {
            function == "nacl.dec"
        }

        fn has_module(&self, module: &str) -> bool {
            module == "nacl"
        }

        fn name_of(&self, role: Role) -> Option<&'static str> {
            (role == Role::OpenBox).then_some("nacl.dec")
        }
    }

    fn render(source: &str, host: &Host) -> Result<Value, String> {
        let variables = Map::new();
        let context = RenderContext { name: "a", saltenv: "base", renderer: "jinja|yaml", variables: &variables, host };
        render_sls(source, &context).map_err(|error| error.to_string())
    }

    #[test]
    fn boxes_in_data_are_opened() {
        let host = Host::new().with_functions(Key);
        let cases = [
            (
                "#!yaml|nacl\na: NACL[x=]\nb: [\"NACL[y]\", {c: \"NACL[z]\\n\"}]\n",
                map! {
                    "a" => "open x=", "b" => list!["open y", map! {"c" => "open z"}],
                },
            ),
            ("#!jinja|yaml|nacl\na: {{ 'NACL[' ~ 'x]' }}\n", map! {"a" => "open x"}),
            // Neither keys nor parts of a text.
            (
                "#!yaml|nacl\nNACL[x]: see NACL[x]\nb: \"NACL[x\\ny]\"\nc: 1\n",
                map! {
                    "NACL[x]" => "see NACL[x]", "b" => "NACL[x\ny]", "c" => 1,
                },
            ),
            ("#!yaml\na: NACL[x]\n", map! {"a" => "NACL[x]"}),
        ];
        for (source, expected) in cases {
            assert_eq!(render(source, &host), Ok(expected.into()), "{source}");
        }
        let error = render("#!yaml|nacl\na: NACL[wrong]\n", &host);
        assert_eq!(error, Err("rendering by nacl failed: decrypting the data failed".to_owned()));
        let error = render("#!jinja|yaml|nacl\n{% for n in [1, 2] %}\n{% endfor %}\na: b: c\n", &host).unwrap_err();
        assert!(error.ends_with("line 4 of the template, which renders to line 5: a: b: c"), "{error}");
        let error = render("#!yaml|nacl\na: NACL[x]\n", &Host::new());
        assert_eq!(error, Err("rendering by nacl failed: boxes cannot be opened here".to_owned()));
    }
}

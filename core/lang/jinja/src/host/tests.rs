use brine_value::map;

use super::*;

/// The functions and the file of one module.
struct Layer(&'static str, &'static str);

impl Functions for Layer {
    fn call(&self, function: &str, _args: Args) -> Result<Value, CallError> {
        assert!(!function.ends_with("panic"), "of a function");
        Ok(self.1.into())
    }

    fn has(&self, function: &str) -> bool {
        function.split('.').next() == Some(self.0)
    }

    fn has_module(&self, module: &str) -> bool {
        module == self.0
    }
}

impl Files for Layer {
    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        match path {
            "broken" => Err(FilesError::Server(self.1.into())),
            path => Ok((path == self.0).then(|| self.1.to_owned())),
        }
    }
}

#[test]
fn the_topmost_layer_with_a_function_or_file_is_used() {
    let host = Host::new().with_functions(Layer("a", "low")).with_functions(Layer("b", "low"));
    let host = host.with_functions(InThread(Layer("a", "high")));
    let host =
        host.with_files(Layer("a", "low")).with_files(Layer("b", "low")).with_files(InThread(Layer("a", "high")));
    for (name, expected) in [("a", Some("high")), ("b", Some("low")), ("c", None)] {
        let function = format!("{name}.f");
        let called = host.call(&function, Args::default()).ok();
        assert_eq!(called, expected.map(Value::from), "{name}");
        assert_eq!((host.has(&function), host.has_module(name)), (expected.is_some(), expected.is_some()), "{name}");
        assert_eq!(host.template(name, "base").unwrap().as_deref(), expected, "{name}");
    }
    assert_eq!(host.template("broken", "base").unwrap_err().to_string(), "high");
    assert!(matches!(host.call("c.f", Args::default()), Err(CallError::NotAvailable(_))));
    assert!(host.call("a.panic", Args::keyword(map! {})).is_err_and(|error| error.message().contains("panicked")));
}

//! The results of Salt in `cases.json`, and what Brine refuses.

use std::path::Path;

use brine_function::{Args, CallError};
use brine_jinja::Functions;
use brine_value::{json, list};

use super::super::{PillarRequest, PillarSource};
use super::*;

/// Cases that Salt ignores, because the file does not exist: the error would tell a minion whether it does.
const REFUSED: &[&str] = &["a grain that leads out"];

struct Echo;

impl Functions for Echo {
    fn call(&self, _: &str, args: Args) -> Result<Value, CallError> {
        Ok(args.positional.into_iter().next().unwrap_or_default())
    }

    fn has(&self, function: &str) -> bool {
        function == "test.echo"
    }

    fn has_module(&self, module: &str) -> bool {
        module == "test"
    }
}

/// Files in a temporary directory; `ROOT` is its placeholder.
struct Case {
    directory: tempfile::TempDir,
    grains: Arc<Map>,
    pillar: Map,
    saltenv: Option<String>,
    pillarenv: Option<String>,
}

impl Case {
    fn new(files: &Map) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path.as_str().unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.as_str().unwrap()).unwrap();
        }
        Case { directory, grains: Arc::default(), pillar: Map::new(), saltenv: None, pillarenv: None }
    }

    fn result(&self, positional: &[Value], keyword: &Map) -> Result<Map, String> {
        let source = PillarSource::new(Arc::new(map! {"colour" => "blue", "pillar_safe_render_error" => false}));
        let none = Map::new();
        let request = PillarRequest {
            id: &"web1".parse().unwrap(),
            grains: &self.grains,
            saltenv: self.saltenv.as_deref(),
            pillarenv: self.pillarenv.as_deref(),
            pillar_override: &none,
            on_demand: None,
            extra_minion_data: &none,
            functions: Some(Host::new().with_functions(Echo)),
        };
        let root = self.directory.path();
        let args = Args {
            positional: positional.iter().map(|value| placed(value, root)).collect(),
            keyword: keyword.iter().map(|(name, value)| (name.clone(), placed(value, root))).collect(),
        };
        pillar(&Call { source: &source, request: &request, pillar: &self.pillar, args })
    }
}

fn placed(value: &Value, root: &Path) -> Value {
    match value {
        Value::Str(text) => text.replace("ROOT", root.to_str().unwrap()).into(),
        Value::List(items) => items.iter().map(|item| placed(item, root)).collect::<Vec<_>>().into(),
        Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), placed(value, root))).collect::<Map>().into(),
        other => other.clone(),
    }
}

/// Returns the arguments by name; choices are recorded as pairs, whose keys may have any type.
fn keyword(recorded: &Value) -> Map {
    let choices = |value: &Value| match value.as_list() {
        None => value.clone(),
        Some(pairs) => {
            let pairs = pairs.iter().map(|pair| pair.as_list().unwrap());
            Value::Map(pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect())
        }
    };
    recorded.as_map().unwrap().iter().map(|(name, value)| (name.clone(), choices(value))).collect()
}

#[test]
fn results_are_those_of_salt() {
    let recorded = json::from_json(include_str!("cases.json")).unwrap();
    let map_at = |value: &Value, name: &str| value.get(name).and_then(Value::as_map).unwrap().clone();
    let cases = recorded.get("cases").and_then(Value::as_list).unwrap();
    assert!(cases.len() > 50);
    let mut different = Vec::new();
    for case in cases {
        let name = case.get("name").and_then(Value::as_str).unwrap();
        let env = |option| case.get("opts").and_then(|opts| opts.get(option)).map(ToString::to_string);
        let this = Case {
            grains: Arc::new(map_at(&recorded, "grains")),
            pillar: map_at(&recorded, "pillar"),
            saltenv: env("saltenv").or(Some("base".into())),
            pillarenv: env("pillarenv"),
            ..Case::new(&map_at(case, "files"))
        };
        let positional = case.get("args").and_then(Value::as_list).unwrap();
        let result = this.result(positional, &keyword(case.get("kwargs").unwrap()));
        let salt = case.get("result").and_then(Value::as_map).filter(|_| !REFUSED.contains(&name));
        let same = match (&result, salt) {
            (Ok(data), Some(salt)) => json::to_json(&data.clone().into()) == json::to_json(&salt.clone().into()),
            (result, salt) => result.is_err() && salt.is_none(),
        };
        if !same {
            different.push(format!("{name}: {result:?}, but Salt: {salt:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn errors_name_the_file_and_hide_its_text() {
    let files = map! {"s.cfg" => "a.yml", "a.yml" => "secret: {{ nothing.at }}"};
    let error = Case::new(&files).result(&["ROOT/s.cfg".into()], &Map::new()).unwrap_err();
    assert!(error.starts_with("Stack pillar template render error in /") && error.contains("a.yml:\n"), "{error}");
    let opts = map! {"ext_pillar" => list![map! {"stack" => "ROOT/s.cfg"}]};
    let case = Case::new(&files);
    let source = PillarSource::new(Arc::new(placed(&opts.into(), case.directory.path()).as_map().unwrap().clone()));
    let none = Map::new();
    let rendered = source.render(&PillarRequest {
        id: &"web1".parse().unwrap(),
        grains: &case.grains,
        saltenv: None,
        pillarenv: None,
        pillar_override: &none,
        on_demand: None,
        extra_minion_data: &none,
        functions: None,
    });
    let errors = rendered.get("_errors").unwrap().to_string();
    assert!(errors.contains("a.yml. Please see master log for details.") && !errors.contains("secret"), "{errors}");
}

#[test]
fn environments_and_grains_cannot_lead_to_other_files() {
    let files = map! {"in/s.cfg" => "{{ __grains__['path'] }}", "x.yml" => "a: 1", "s.cfg" => "x.yml"};
    for (path, error) in [("../x.yml", true), ("../none.yml", true), ("/etc/hosts", true), ("none.yml", false)] {
        let case = Case { grains: Arc::new(map! {"path" => path}), ..Case::new(&files) };
        let result = case.result(&["ROOT/in/s.cfg".into()], &Map::new());
        assert_eq!(result.is_err(), error, "{path}: {result:?}");
    }
    let keyword = map! {"opts:saltenv" => map! {"__env__" => "ROOT/in/__env__/s.cfg"}};
    for (environment, error) in [("..", true), ("../in", true), (".", true), ("dev", false)] {
        let case = Case { saltenv: Some(environment.into()), ..Case::new(&files) };
        assert_eq!(case.result(&[], &keyword).is_err(), error, "{environment}");
    }
}

#[test]
fn pipes_and_large_files_are_refused() {
    let case = Case::new(&map! {"s.cfg" => "a.yml"});
    let path = case.directory.path().join("a.yml");
    std::fs::File::create(&path).unwrap().set_len(MAX_FILE_SIZE + 1).unwrap();
    let error = case.result(&["ROOT/s.cfg".into()], &Map::new()).unwrap_err();
    assert!(error.contains("larger than"), "{error}");
    assert!(case.result(&["s.cfg".into()], &Map::new()).unwrap().is_empty(), "relative to the working directory");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = case.result(&["ROOT/s.cfg".into()], &Map::new()).unwrap_err();
    assert!(error.contains("not a regular file"), "{error}");
}

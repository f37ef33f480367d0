//! A minion without a master, whose functions and states are called by `salt-call --local`.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

pub struct Minion {
    pub directory: TempDir,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, String)>,
}

impl Minion {
    /// Creates a minion with further lines of configuration.
    pub fn new(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("srv")).unwrap();
        let config = format!(
            "id: db\nroot_dir: {root}\nfile_client: local\nfile_roots: {{base: [{root}/srv]}}\nlog_level: error\n{options}",
            root = root.display(),
        );
        fs::write(root.join("minion"), config).unwrap();
        Minion { directory, environment: Vec::new() }
    }

    pub fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_brine"))
            .arg("call")
            .args(["--local", "--out=json", "-c"])
            .arg(self.directory.path())
            .args(words)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap()
    }

    pub fn call(&self, words: &[&str]) -> Value {
        let output = self.run(words);
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr)));
        answer["local"].clone()
    }

    /// Applies an SLS and returns its states, in order, as `[result, comment, changes]`.
    pub fn apply(&self, sls: &str, test: bool) -> Vec<Value> {
        fs::write(self.directory.path().join("srv/db.sls"), sls).unwrap();
        let answer = self.call(&["state.apply", "db", if test { "test=True" } else { "test=False" }]);
        let mut states: Vec<&Value> = answer.as_object().unwrap_or_else(|| panic!("{answer:#}")).values().collect();
        states.sort_by_key(|state| state["__run_num__"].as_i64());
        states.iter().map(|state| json!([state["result"], state["comment"], state["changes"]])).collect()
    }
}

use std::time::{Duration, Instant};

use super::catalogue;
use crate::{Options, check};

/// Returns a text with each number below this one in the place of `#`.
fn numbered(count: usize, text: &str) -> String {
    (0..count).map(|number| text.replace('#', &number.to_string())).collect()
}

/// Large, deep and odd files are checked within a bound, without a panic.
#[test]
fn hostile_trees_stay_within_bounds() {
    let catalogue = catalogue();
    let steps = |target: &str| {
        format!("a:\n  salt.state:\n    - highstate: True\n    - tgt: {target}\n    - tgt_type: compound\n")
    };
    let sources: Vec<(&str, String)> = vec![
        ("deep.sls", steps(&format!("'{}a{}'", "( ".repeat(5000), " )".repeat(5000)))),
        ("long.sls", steps(&format!("'{}a'", "G@os:x and ".repeat(50_000)))),
        ("groups.sls", steps(&format!("'{}a'", numbered(20_000, "N@g# or ")))),
        ("stars.sls", steps(&format!("'G@{}'", "*:".repeat(5000)))),
        ("list.sls", steps(&format!("[{}]", "a, ".repeat(20_000)))),
        ("wide.sls", steps(&format!("[{}]", "ü, ".repeat(20_000)))),
        ("calls.sls", format!("{}\n", "{{ salt['test.echo'](x=1, x=2, *a, **b) }}".repeat(2000))),
        ("keys.sls", format!("a:\n  module.run:\n{}", numbered(5000, "    - test.echo:#: [1, 2]\n"))),
        (
            "etc/salt/master",
            format!(
                "reactor:\n  - 'salt/minon/{}/x': [a]\n  - '{}': [b]\n{}",
                "*".repeat(100_000),
                "salt/job/[".repeat(1000),
                numbered(5000, "  - 'salt/minon/*#/start': [/srv/reactor/a.sls]\n")
            ),
        ),
        ("reactor/a.sls", "{{ data['é\u{301}'] }}{{ data[' }}{{ data. }}{{ data['x\n{{ data['ü\"] }}: x\n".to_owned()),
        ("reactor/b.sls", "{{ data['ö'] }}{{ data.é }}{{ data['x'] }}:\n  local.test.ping:\n    - tgt: é\n".to_owned()),
    ];
    let texts: Vec<(&str, &str)> = sources.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let tree = brine_authoring_model::Tree::of_texts(texts.iter().copied());
    let start = Instant::now();
    check(&tree, &catalogue, &Options::default());
    // Without optimisation, and beside other tests.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    for (path, text) in texts {
        for end in (0..text.len().min(300)).step_by(7).filter(|end| text.is_char_boundary(*end)) {
            let tree = brine_authoring_model::Tree::of_texts([(path, &text[..end])]);
            check(&tree, &catalogue, &Options::default());
        }
    }
}

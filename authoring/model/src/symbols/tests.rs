use super::references::references;
use super::resolve::definitions;
use crate::Tree;
use crate::index::Place;

const TREE: &[(&str, &str)] = &[
    ("salt/top.sls", "base:\n  '*':\n    - web\n    - db\n"),
    (
        "salt/web/init.sls",
        "{% from 'web/map.jinja' import port, name as called with context %}\ninclude:\n  - db\nweb-package:\n  \
         pkg.installed:\n    - name: {{ called | upper }}\n/etc/web:\n  file.managed:\n    - source: salt://web/files/web.conf\n    \
         - require:\n      - pkg: web-package\n      - db-running\n    - context:\n        port: {{ pillar['web']['port'] }}\n        \
         other: {{ salt['pillar.get']('web:port', 1) }}{{ port }}\n",
    ),
    (
        "salt/web/map.jinja",
        "{% set port = grains['os'] %}\n{% set name = 'x' %}\n{% macro m(a) %}{{ a }}{% endmacro %}\n",
    ),
    ("salt/web/files/web.conf", "x"),
    ("salt/db.sls", "db-running:\n  service.running: []\n"),
    ("pillar/top.sls", "base:\n  '*':\n    - web\n"),
    ("pillar/web.sls", "web:\n  port: 80\n"),
];

/// Returns the places as path and text.
fn describe(tree: &Tree, places: impl IntoIterator<Item = Place>) -> Vec<String> {
    let text = |place: &Place| tree.file(&place.path).map_or("", |file| &file.text[place.start..place.end]).to_owned();
    places.into_iter().map(|place| format!("{}:{}:{}", place.path, place.start, text(&place))).collect()
}

#[test]
fn symbols_have_definitions_and_references() {
    let tree = Tree::of_texts(TREE.iter().copied());
    for (path, at, defined, uses) in [
        ("salt/web/init.sls", "web-package\n      - db", vec!["salt/web/init.sls:84:web-package"], 2),
        ("salt/web/init.sls", "db-running", vec!["salt/db.sls:0:db-running"], 2),
        ("salt/web/init.sls", "- db\nweb", vec!["salt/db.sls:0:"], 2),
        ("salt/web/init.sls", "web/files", vec!["salt/web/files/web.conf:0:"], 1),
        ("salt/web/init.sls", "web/map", vec!["salt/web/map.jinja:0:"], 1),
        ("salt/web/init.sls", "called | ", vec!["salt/web/map.jinja:37:name"], 3),
        ("salt/web/init.sls", "port }}\n", vec!["salt/web/map.jinja:7:port"], 3),
        ("salt/web/init.sls", "port'] }}", vec!["pillar/web.sls:7:port"], 3),
        ("salt/web/init.sls", "port', 1", vec!["pillar/web.sls:7:port"], 3),
        ("salt/web/init.sls", "web:port'", vec!["pillar/web.sls:0:web"], 3),
        ("salt/web/map.jinja", "a }}", vec!["salt/web/map.jinja:62:a"], 2),
        ("salt/top.sls", "web", vec!["salt/web/init.sls:0:"], 1),
        ("pillar/top.sls", "web", vec!["pillar/web.sls:0:"], 1),
    ] {
        let file = tree.file(path).unwrap();
        let at = file.text.find(at).unwrap() + at.len().min(2) - usize::from(!at.starts_with("- ")) * 2;
        let symbol = file.symbol_at(at).unwrap_or_else(|| panic!("{path} {at}"));
        assert_eq!(describe(&tree, definitions(&tree, file, &symbol)), defined, "{path} {at} {symbol:?}");
        let places = references(&tree, &[], file, &symbol);
        let places = describe(&tree, places.into_iter().map(|(place, _)| place));
        assert_eq!(places.len(), uses, "{path} {at} {symbol:?} {places:?}");
    }
}

#[test]
fn an_index_stays_while_a_file_defines_the_same() {
    let mut tree = Tree::of_texts(TREE.iter().copied());
    let named = |tree: &Tree, name: &str| tree.index().states_named(name).len();
    let before = std::ptr::from_ref(tree.index());
    tree.set_text("salt/db.sls", "# A comment.\ndb-running:\n  service.running:\n    - enable: True\n");
    assert!(std::ptr::eq(before, tree.index()) && named(&tree, "db-running") == 1);
    tree.set_text("salt/db.sls", "db-running:\n  service.running:\n    - name: db\n");
    assert_eq!((named(&tree, "db"), named(&tree, "db-running")), (1, 1));
    tree.set_text("salt/db.sls", "include:\n  - web\nother:\n  service.running: []\n");
    assert_eq!((named(&tree, "db"), named(&tree, "other"), tree.index().includes("salt/db.sls").len()), (0, 1, 1));
    tree.set_text("pillar/web.sls", "\nweb:\n  port: 80\n");
    assert_eq!(tree.index().pillar_keys["web"][0].start, 1);
}

use super::{Cursor, InTag};

/// Returns the place of `|` in a text: for data the way, whether it is a key, and the word.
fn describe(text: &str) -> String {
    let at = text.rfind('|').unwrap();
    let text = format!("{}{}", &text[..at], &text[at + 1..]);
    match Cursor::at(&text, at) {
        Some(Cursor::Data { path, is_key, word, .. }) => {
            let path: Vec<String> = path
                .into_iter()
                .map(|step| match step {
                    super::Step::Key(key) => key,
                    super::Step::Item => "-".to_owned(),
                })
                .collect();
            format!("{}{} {}", path.join("/"), if is_key { ":" } else { "" }, &text[word])
        }
        Some(Cursor::Tag { what, word }) => match what {
            InTag::Key { root, above, is_path } => format!("{root:?} {above:?} {is_path} {}", &text[word]),
            what => format!("{what:?} {}", &text[word]),
        },
        None => "nothing".to_owned(),
    }
}

#[test]
fn places_in_data_are_found_in_half_typed_texts() {
    for (text, expected) in [
        ("we|", " we"),
        ("web:\n  pk|", "web pk"),
        ("web:\n  pk|\ndb:\n  test.nop: []\n", "web pk"),
        ("web:\n  pk|\n  file.managed: []\n", "web: pk"),
        ("web:\n  file.managed:\n    - |\n", "web/file.managed/- "),
        ("web:\n  file.managed:\n    - so|\n    - name: x\n", "web/file.managed/- so"),
        ("web:\n  file.managed:\n    - source: salt://a/|\n", "web/file.managed/-/source salt://a/"),
        ("web:\n  file.managed:\n    - source: 'salt://a/|\n", "web/file.managed/-/source salt://a/"),
        ("a:\n  b.c:\n    - require:\n      - pkg: x|y\n", "a/b.c/-/require/-/pkg xy"),
        ("a:\n  b.c:\n    - require:\n      - p|\n", "a/b.c/-/require/- p"),
        ("include:\n  - a|\n\nb:\n  c.d: []\n", "include/- a"),
        ("x: [\n\nweb:\n  pk|", "web pk"),
        ("{% if a %}\nweb:\n  pkg.installed:\n    - na|\n{% else %}\nx: 1\n{% endif %}\n", "web/pkg.installed/- na"),
        ("{% if a %}\nx: 1\n{% else %}\nweb:\n  pkg.installed:\n    - na|\n", "web/pkg.installed/- na"),
        ("# we|", "nothing"),
    ] {
        assert_eq!(describe(text), expected, "{text}");
    }
}

#[test]
fn places_in_tags_are_found() {
    for (text, expected) in [
        ("{{ salt['pkg.|'] }}", "Function { module: None } pkg."),
        ("{{ salt.pkg.ve| }}", "Function { module: Some(\"pkg\") } ve"),
        ("{{ pillar['web']['|", "Pillar [\"web\"] false "),
        ("{{ pillar.web.po| }}", "Pillar [\"web\"] false po"),
        ("{{ pillar.get('w|') }}", "Pillar [] false w"),
        ("{{ salt['pillar.get']('web:po|') }}", "Pillar [\"web\"] true po"),
        ("{{ salt['grains.get']('o|') }}", "Grains [] true o"),
        ("{% if grains['o| %}", "Grains [] false o"),
        ("{{ a | up| }}", "Filter up"),
        ("{% if a is no| %}", "Test no"),
        ("{% if a is not de| %}", "Test de"),
        ("{% fo| %}", "Statement fo"),
        ("{% from 'web/|' %}", "Template web/"),
        ("{% from 'web/map.jinja' import a, p| %}", "Imported { template: \"web/map.jinja\" } p"),
        ("{{ map.po| }}", "Member { variable: \"map\" } po"),
        ("{{ salt['pkg.version'](a, na| }}", "Variable { call: Some(\"pkg.version\") } na"),
        ("{{ po| }}", "Variable { call: None } po"),
        ("{{ a }}: b|", "\u{f0000} b"),
        ("{# a|", "nothing"),
    ] {
        assert_eq!(describe(text), expected, "{text}");
    }
}

use super::{catalogue, found};
use crate::Options;

#[test]
fn arguments_of_called_functions_are_checked() {
    let catalogue = catalogue();
    for (source, expected) in [
        // Templates.
        ("{{ salt['test.echo']('a') }}:\n  test.nop: []\n", vec![]),
        ("{{ salt['test.echo'](text='a') }}:\n  test.nop: []\n", vec![]),
        ("{{ salt.test.echo('a') }}:\n  test.nop: []\n", vec![]),
        ("{{ salt['test.arg'](1, a=2) }}:\n  test.nop: []\n", vec![]),
        ("{% set x = [1] %}{{ salt['test.echo'](*x) }}:\n  test.nop: []\n", vec![]),
        ("{{ salt['cmd.run']('a', cwd='/', python_shell=True) }}:\n  test.nop: []\n", vec![]),
        ("{{ salt['test.echo'](txet='a') }}:\n  test.nop: []\n", vec!["B409 1:9", "B408 1:22"]),
        ("{{ salt['test.echo']('a', nme=1) }}:\n  test.nop: []\n", vec!["B408 1:27"]),
        ("{{ salt.test.echo() }}:\n  test.nop: []\n", vec!["B409 1:9"]),
        ("{{ salt['test.echo']('a', 'b') }}:\n  test.nop: []\n", vec!["B408 1:9"]),
        // Keys of `module.run`.
        ("a:\n  module.run:\n    - test.echo:\n      - text: b\n", vec![]),
        ("a:\n  module.run:\n    - test.echo: [b]\n", vec![]),
        ("a:\n  module.run:\n    - test.echo: b\n", vec![]),
        ("a:\n  module.run:\n    - test.ping: []\n", vec![]),
        ("a:\n  module.run:\n    - test.ping:\n", vec![]),
        ("a:\n  module.run:\n    - test.echo:again:\n      - {{ grains.os }}\n", vec![]),
        (
            "a:\n  module.run:\n    - test.echo:\n{% if grains.os %}\n      - text: a\n{% else %}\n      - text: b\n{% endif %}\n",
            vec![],
        ),
        ("a:\n  module.run:\n    - test.echo:\n      - txt: b\n", vec!["B409 3:7", "B408 4:9"]),
        ("a:\n  module.run:\n    - test.echo: []\n", vec!["B409 3:7"]),
        // A name.
        ("a:\n  module.run:\n    - name: test.echo\n    - text: b\n", vec![]),
        ("test.echo:\n  module.run:\n    - args: [b]\n    - require_in: []\n", vec![]),
        ("a:\n  module.run:\n    - name: service.restart\n    - m_name: nginx\n", vec![]),
        ("a:\n  module.run:\n    - name: test.echo\n    - kwargs: {text: b}\n", vec![]),
        ("a:\n  module.run:\n    - name: test.echo\n    - {{ grains.os }}\n", vec![]),
        ("a:\n  module.run:\n    - name: test.echo\n", vec!["B409 3:13"]),
        ("a:\n  module.run:\n    - name: test.echo\n    - txt: b\n", vec!["B409 3:13", "B408 4:7"]),
        ("a:\n  module.run:\n    - name: test.echo\n    - kwargs: {text: b, c: d}\n", vec!["B408 4:25"]),
        // Steps.
        ("test.echo:\n  salt.function:\n    - tgt: a\n    - arg: [b]\n", vec![]),
        ("test.echo:\n  salt.function:\n    - tgt: a\n    - arg: ['text=b']\n", vec![]),
        ("test.echo:\n  salt.function:\n    - tgt: a\n    - kwarg:\n        text: b\n", vec![]),
        ("test.echo:\n  salt.function:\n    - tgt: a\n    - kwarg:\n        txet: b\n", vec!["B409 1:1", "B408 5:9"]),
        ("test.echo:\n  salt.function:\n    - tgt: a\n    - arg: [b, c]\n", vec!["B408 1:1"]),
        ("test.echo:\n  salt.function:\n    - tgt: a\n", vec!["B409 1:1"]),
        // A schedule.
        ("a:\n  schedule.present:\n    - function: test.echo\n    - job_args: [b]\n    - seconds: 9\n", vec![]),
        (
            "a:\n  schedule.present:\n    - function: test.echo\n    - job_kwargs: {txet: b}\n    - seconds: 9\n",
            vec!["B409 3:17", "B408 4:20"],
        ),
    ] {
        assert_eq!(found(&catalogue, &[("a.sls", source)], &Options::default()), expected, "{source}");
    }
}

#[test]
fn functions_of_the_mine_and_of_schedules_are_checked() {
    let catalogue = catalogue();
    let mine = "mine_functions:\n  test.ping: []\n  network.ip_addrs:\n    interface: eth0\n  os:\n    - mine_function: grains.get\n    - os\n    - allow_tgt: '*'\n  addresses:\n    - mine_function: network.ip_addrs\n    - interfac: eth0\n  test.echo: []\n  own.thing:\n    x: 1\n";
    let schedule = "schedule:\n  a:\n    function: test.echo\n    kwargs: {txt: b}\n  b:\n    function: test.echo\n    args: [c]\n    minutes: 1\n";
    for (path, source, expected) in [
        ("pillar/a.sls", mine, vec!["B408 11:7", "B409 12:3"]),
        ("etc/salt/minion", mine, vec!["B408 11:7", "B409 12:3"]),
        ("pillar/a.sls", schedule, vec!["B409 3:15", "B408 4:14"]),
        // The master's jobs are runner functions.
        ("etc/salt/master", schedule, vec![]),
        ("pillar/a.sls", "schedule: {{ x | json }}\nmine_functions: [a]\n", vec!["B308 1:14"]),
    ] {
        assert_eq!(found(&catalogue, &[(path, source)], &Options::default()), expected, "{path}\n{source}");
    }
}

#[test]
fn functions_of_the_tree_are_not_checked() {
    let catalogue = catalogue();
    let texts = [
        ("_modules/test.py", "def echo(x, y):\n    pass\n"),
        ("a.sls", "{{ salt['test.echo'](x=1, y=2) }}:\n  test.nop: []\n"),
    ];
    assert_eq!(found(&catalogue, &texts, &Options::default()), Vec::<String>::new());
}

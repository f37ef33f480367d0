//! The arguments of states that the state engine itself reads.

/// Arguments of the state engine, with their documentation. A function receives them only if it has a parameter of that
/// name.
pub const OWN_ARGS: &[(&str, &str)] = &[
    ("aggregate", "Whether packages of several states may be installed at once; with `pkg`."),
    ("check_cmd", "Command, or list of commands, that must exit with 0 after the state; otherwise it has failed."),
    ("cmd_opts_exclude", "Options of `cmd.run` that commands of `onlyif` and `unless` do not take over, as a list."),
    ("failhard", "Whether a failure of the state ends the run."),
    (
        "onlyif",
        "Command, or list of commands, all of which must exit with 0 for the state to run. A mapping with `fun` and \
         `args` calls an execution function, whose result must be true.",
    ),
    ("unless", "The opposite of `onlyif`: the state does not run if all commands exit with 0."),
    ("creates", "Path, or list of paths; the state does not run if all of them exist."),
    (
        "retry",
        "Whether a failed state runs again: `True`, or a mapping with `attempts`, `interval` and `splay` in seconds, and \
         `until`, the expected result.",
    ),
    ("order", "Place in the run: a number, `first` or `last`. Requisites take precedence."),
    ("parallel", "Whether the run goes on while this state runs."),
    ("reload_modules", "Whether custom modules are loaded again after the state."),
    ("reload_grains", "Whether grains are loaded again after the state."),
    ("reload_pillar", "Whether the pillar is loaded again after the state."),
    ("runas", "User that commands of `onlyif`, `unless` and `check_cmd` run as; some states run as this user, too."),
    ("runas_password", "Without effect: for Windows."),
    ("no_log", "Whether comment and changes of the state are hidden in results and logs."),
    (
        "fire_event",
        "Whether an event is sent to the master after the state: `True` for the tag \
         `salt/state_result/JID/ID/NAME`, or another end of the tag.",
    ),
    ("saltenv", "Environment of the file server; that of the SLS by default."),
    ("umask", "Umask of the state, as an octal string."),
    ("use", "States whose arguments this state takes over, where it has none of its own."),
    ("use_in", "States that take over the arguments of this state."),
    ("onfail_stop", "Without effect."),
    ("require_in", "States that require this one."),
    ("watch_in", "States that watch this one."),
    ("onchanges_in", "States that run only if this one has changes."),
    ("onfail_in", "States that run only if this one fails."),
    ("prereq_in", "States before which this one runs if they would have changes."),
    ("listen_in", "States that listen to this one."),
];

/// Whether the state engine reads an argument.
pub(crate) fn is_own(name: &str) -> bool {
    OWN_ARGS.iter().any(|(own, _)| *own == name)
}

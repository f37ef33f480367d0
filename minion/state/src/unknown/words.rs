//! Words of Ansible, Puppet and Chef, and what takes their place in states.

/// Words, and what takes their place.
const INSTEAD: [(&[&str], &str); 14] = [
    (&["when", "only_if"], "write 'onlyif' or 'unless', or {% if %} of Jinja around the state"),
    (&["not_if"], "write 'unless'"),
    (&["notify", "notifies"], "write 'watch_in', or 'listen_in' for the end of the run"),
    (&["subscribe", "subscribes"], "write 'watch', or 'listen' for the end of the run"),
    (
        &["loop", "with_items", "with_dict", "with_list", "with_fileglob", "for_each", "foreach"],
        "write {% for %} of Jinja around the state, or 'names'",
    ),
    (&["register"], "write 'onchanges', 'onfail' or a slot (__slot__:salt:...) in the state that needs the result"),
    (&["become", "become_user", "sudo", "sudo_user"], "write 'runas'; states without it run as the minion's user"),
    (&["ignore_errors", "ignore_failure"], "a failed state does not end the run unless 'failhard' says so"),
    (&["changed_when"], "write 'stateful', or 'unless' and 'onlyif'"),
    (&["failed_when"], "write 'success_retcodes' or 'check_cmd'"),
    (&["delegate_to", "run_once"], "name the minion in the top file, or write an orchestration"),
    (&["depends_on", "depends", "needs"], "write 'require'"),
    (&["retries", "until"], "write 'retry' with 'attempts', 'interval' and 'until'"),
    (&["handlers", "tasks", "block", "rescue"], "each state has an id of its own in Salt"),
];

/// Words that other systems have for an argument of the same meaning.
const OTHER: [(&str, &str); 14] = [
    ("owner", "user"),
    ("src", "source"),
    ("dest", "name"),
    ("path", "name"),
    ("content", "contents"),
    ("chmod", "mode"),
    ("permissions", "mode"),
    ("perms", "mode"),
    ("variables", "context"),
    ("vars", "context"),
    ("user", "runas"),
    ("chdir", "cwd"),
    ("enabled", "enable"),
    ("show_diff", "show_changes"),
];

/// Returns what takes the place of a word of another system.
pub(super) fn instead_of(word: &str) -> Option<&'static str> {
    INSTEAD.iter().find(|(words, _)| words.contains(&word)).map(|(_, advice)| *advice)
}

/// Whether a word is one of those that control tasks of Ansible, which nobody calls a variable.
pub(super) fn is_of_ansible(word: &str) -> bool {
    matches!(word, "when" | "notify" | "loop" | "register" | "become" | "become_user" | "ignore_errors" | "delegate_to")
        || word.starts_with("with_") && instead_of(word).is_some()
}

/// Returns the name of the argument that has another name in other systems.
pub(super) fn other_name(word: &str) -> Option<&'static str> {
    OTHER.iter().find(|(name, _)| *name == word).map(|(_, other)| *other)
}

//! Changes of a file with several names; which of them split it was recorded from Salt 3008.5.

use std::os::unix::fs::PermissionsExt;

use brine_function::Args;
use brine_value::{Value, list, map};

use super::run;
use crate::testing;

const TEXT: &str = "a=1\n#c\nb\n# START\nx\n# END\n";

#[test]
fn hard_links_stay_together_where_salt_writes_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("a"), directory.path().join("b"));
    let name = path.display().to_string();
    let prepare = || {
        _ = std::fs::remove_file(&path);
        _ = std::fs::remove_file(&other);
        std::fs::write(&path, TEXT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::hard_link(&path, &other).unwrap();
    };
    let check = |what: &str, together: bool| {
        let (new, old) = (std::fs::read_to_string(&path).unwrap(), std::fs::read_to_string(&other).unwrap());
        assert_ne!(new, TEXT, "{what}");
        assert_eq!(new == old, together, "{what}: {new:?} {old:?}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o640, "{what}");
    };
    for (fun, args, together) in [
        ("append", map! {"text" => "new"}, true),
        ("prepend", map! {"text" => "new"}, true),
        ("replace", map! {"pattern" => "a=1\\n", "repl" => ""}, true),
        ("keyvalue", map! {"key" => "a", "value" => "3"}, true),
        ("comment", map! {"regex" => "b"}, false),
        ("blockreplace", map! {"marker_start" => "# START", "marker_end" => "# END", "content" => "y"}, false),
    ] {
        prepare();
        let mut args = args;
        args.insert("name".into(), name.as_str().into());
        let (result, comment, _) = run(&format!("file.{fun}"), args, false);
        assert_eq!(result, Some(true), "{fun}: {comment}");
        check(fun, together);
    }
    let context = testing::context(&[]);
    for (fun, args, together) in [
        ("append", list!["new"], true),
        ("prepend", list!["new"], true),
        ("write", list!["new"], true),
        ("replace", list!["x", "y"], true),
        ("comment_line", list!["b"], false),
    ] {
        prepare();
        let Value::List(args) = args else { unreachable!() };
        let positional = [vec![name.as_str().into()], args].concat();
        context.call(&format!("file.{fun}"), Args::positional(positional)).unwrap();
        check(fun, together);
    }
}

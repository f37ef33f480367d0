use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

// As written by htpasswd of Apache 2.4.71.
#[test]
fn users_are_added_verified_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    let (file, new) = (format!("{root}/pw"), format!("{root}/new"));
    std::fs::write(&file, "").unwrap();
    let transcript = "
        $ htpasswd -ic ROOT/new larry
        ! Adding password for user larry
        $ htpasswd -iB ROOT/pw moe
        ! Updating password for user moe
        $ htpasswd -ins larry
        | larry:{SHA}kgol72hsT3ymrSPdEJ061lMWGDI=
        $ htpasswd -iv ROOT/pw larry
        ! Password for user larry correct.
        $ htpasswd -iv ROOT/pw larry
        ! password verification failed
        = 3
        $ htpasswd -ivm ROOT/pw nobody
        ! User nobody not found
        = 6
        $ htpasswd -D ROOT/pw larry
        ! Deleting password for user larry
        $ htpasswd -D ROOT/pw larry
        ! User larry not found
    ";
    let programs = Scripted::new(&transcript.replace("ROOT", &root));
    let context = context_with(map! {}, programs.clone());
    let (file, new) = (file.as_str(), new.as_str());
    insta::assert_snapshot!(answers(&context, &[
        ("webutil.useradd", list![new, "larry", "badpassword"], map! {}),
        ("webutil.useradd", list![file, "moe", "badpassword"], map! {"opts" => "B"}),
        ("webutil.useradd", list![file, "larry", "badpassword", "ns"], map! {}),
        ("webutil.verify", list![file, "larry", "badpassword"], map! {}),
        ("webutil.verify", list![file, "larry", "wrong"], map! {}),
        ("webutil.verify", list![file, "nobody", "wrong"], map! {"opts" => "m"}),
        ("webutil.verify", list![new, "larry", "wrong"], map! {}),
        ("webutil.userdel", list![file, "larry"], map! {}),
        ("webutil.userdel", list![file, "larry"], map! {"all_results" => true}),
        ("webutil.userdel", list![new, "larry"], map! {}),
    ]).replace(&root, "ROOT"), @r#"
    webutil.useradd: {"pid": 1, "retcode": 0, "stdout": "", "stderr": "Adding password for user larry"}
    webutil.useradd: {"pid": 1, "retcode": 0, "stdout": "", "stderr": "Updating password for user moe"}
    webutil.useradd: {"pid": 1, "retcode": 0, "stdout": "larry:{SHA}kgol72hsT3ymrSPdEJ061lMWGDI=", "stderr": ""}
    webutil.verify: true
    webutil.verify: false
    webutil.verify: false
    webutil.verify: false
    webutil.userdel: ["Deleting password for user larry"]
    webutil.userdel: {"pid": 1, "retcode": 0, "stdout": "", "stderr": "User larry not found"}
    webutil.userdel: "Error: The specified htpasswd file does not exist"
    "#);
    let ran = programs.ran();
    assert!(!ran.contains("badpassword") && !ran.contains("wrong"), "{ran}");
}

#[test]
fn words_that_change_the_meaning_are_rejected() {
    let context = context_with(map! {}, Scripted::new(""));
    insta::assert_snapshot!(answers(&context, &[
        ("webutil.useradd", list!["/a", "-D", "pw"], map! {}),
        ("webutil.useradd", list!["-D", "user", "pw"], map! {}),
        ("webutil.useradd", list!["/a", "a\nroot", "pw"], map! {}),
        ("webutil.useradd", list!["/a", "a:b", "pw"], map! {}),
        ("webutil.useradd", list!["/a", "", "pw"], map! {}),
        ("webutil.useradd", list!["/a", "user", "a\nb"], map! {}),
        ("webutil.useradd", list!["/a", "user", "a\0b"], map! {}),
        ("webutil.useradd", list!["/a", "user", "pw", " -D"], map! {}),
        ("webutil.userdel", list!["/dev/null", "-n"], map! {}),
    ]), @r#"
    webutil.useradd: ERROR: '-D' cannot be used: it starts with '-' or is empty
    webutil.useradd: ERROR: '-D' cannot be used: it starts with '-' or is empty
    webutil.useradd: ERROR: the user "a\nroot" is invalid: it contains ':' or a control character
    webutil.useradd: ERROR: the user "a:b" is invalid: it contains ':' or a control character
    webutil.useradd: ERROR: '' cannot be used: it starts with '-' or is empty
    webutil.useradd: ERROR: the password is invalid: it contains a newline or NUL
    webutil.useradd: ERROR: the password is invalid: it contains a newline or NUL
    webutil.useradd: ERROR: opts is invalid: expected letters of options, got ' -D'
    webutil.userdel: ERROR: '-n' cannot be used: it starts with '-' or is empty
    "#);
}

#[test]
fn states_compare_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pw").display().to_string();
    std::fs::write(&file, "larry:{SHA}kgol72hsT3ymrSPdEJ061lMWGDI=\nmoe.x:y\n").unwrap();
    let wrong = "$ htpasswd -iv FILE larry\n! password verification failed\n= 3\n";
    let add = "$ htpasswd -i FILE larry\n! Updating password for user larry\n";
    let (set, gone) =
        ("User 'NAME' is set to be added to htpasswd file", "User 'NAME' is set to be removed from htpasswd file");
    for (function, name, more, test, transcript, result, comment) in [
        ("user_exists", "larry", map! {}, false, "", Some(true), "User already known"),
        ("user_exists", "curly", map! {}, true, "", None, set),
        ("user_exists", "moe*x", map! {}, true, "", None, set),
        ("user_exists", "larry", map! {"force" => true}, true, "", None, set),
        ("user_exists", "larry", map! {"update" => true}, true, wrong, None, set),
        (
            "user_exists",
            "larry",
            map! {"update" => true},
            false,
            "$ htpasswd -iv FILE larry\n! Password for user larry correct.\n",
            Some(true),
            "User already known",
        ),
        (
            "user_exists",
            "larry",
            map! {"update" => true},
            false,
            &format!("{wrong}{add}"),
            Some(true),
            "Updating password for user larry",
        ),
        (
            "user_exists",
            "curly",
            map! {"options" => "B"},
            false,
            "$ htpasswd -iB FILE curly\n! htpasswd: cannot modify file\n= 1\n",
            Some(false),
            "htpasswd: cannot modify file",
        ),
        ("user_absent", "curly", map! {}, false, "", Some(true), "User already not in file"),
        ("user_absent", "larry", map! {}, true, "", None, gone),
        (
            "user_absent",
            "larry",
            map! {},
            false,
            "$ htpasswd -D FILE larry\n! Deleting password for user larry\n",
            Some(true),
            "Deleting password for user larry",
        ),
        (
            "user_absent",
            "larry",
            map! {},
            false,
            "$ htpasswd -D FILE larry\n! htpasswd: cannot modify file\n= 1\n",
            Some(false),
            "htpasswd: cannot modify file",
        ),
    ] {
        let programs = Scripted::new(&transcript.replace("FILE", &file));
        let call = context_with(map! {}, programs.clone());
        let mut args = map! {"name" => name, "htpasswd_file" => file.as_str()};
        args.extend(more);
        if function == "user_exists" {
            args.insert("password".into(), "secr3t".into());
        }
        let report = brine_testing::applied(&call, &programs, &format!("webutil.{function}"), args, test);
        assert_eq!((report.result, report.comment), (result, comment.replace("NAME", name)), "{function} {name}");
        let is_changed = !comment.contains("already") && result != Some(false);
        assert_eq!(report.changes.is_truthy(), is_changed, "{function} {name}");
        assert!(!report.ran.contains("secr3t"));
    }
}

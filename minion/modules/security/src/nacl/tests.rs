//! Boxes of PyNaCl, keys in arguments, files, options and the pillar, and wrong ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use crate::testing::context;

/// The bytes 0 to 31, and their public key.
const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const PUBLIC: &str = "j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8=";
/// "pässword" and a newline, encrypted by PyNaCl 1.6 with these keys.
const SEALED: &str = "Hhkx2IuwlFS31rvUpnWRUbSbuGB3E0o2Gw+SOz9oZxmIM4CE04WGFhdDMj3AnDZbDeymcr4XEI48vw==";
const IN_SECRET_BOX: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXWnBqrQFLE+ARBVKU7oq3oi48nDy0vc1i3zY=";
const PLAINTEXT: &str = "pässword\n";

fn call(context: &Context, function: &str, data: Value, keyword: Map) -> Result<Value, String> {
    context.call(function, Args { positional: vec![data], keyword }).map_err(message)
}

fn message(error: CallError) -> String {
    match error {
        CallError::Execution(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn boxes_of_pynacl_are_opened() {
    let empty = "dxFf/Ow8z+jGy0ZSkGY+1+Tc5eBvK2PAItiupofUJHkxMjvKtjbzCeoSDgEJ05UG";
    let bytes = "hIHiGFCHhUQGhoD0BZRskdJK7NMCP9kin4Dz7EIfjnd2zjYrr7tI7+SNlugxVyniGJk=";
    let cases: [(&str, Value, Map, Value); 9] = [
        ("nacl.dec", SEALED.into(), map! {"sk" => SECRET}, PLAINTEXT.into()),
        ("nacl.dec", SEALED.as_bytes().to_vec().into(), map! {"sk" => SECRET}, PLAINTEXT.into()),
        ("nacl.dec", format!("{SEALED}\n").into(), map! {"sk" => SECRET, "unknown" => 1}, PLAINTEXT.into()),
        ("nacl.sealedbox_decrypt", SEALED.into(), map! {"sk" => SECRET, "box_type" => "secretbox"}, PLAINTEXT.into()),
        ("nacl.dec", empty.into(), map! {"sk" => SECRET}, "".into()),
        ("nacl.dec", bytes.into(), map! {"sk" => SECRET}, vec![0xff, 0].into()),
        ("nacl.dec", IN_SECRET_BOX.into(), map! {"sk" => SECRET, "box_type" => "secretbox"}, PLAINTEXT.into()),
        ("nacl.dec", IN_SECRET_BOX.into(), map! {"key" => SECRET}, PLAINTEXT.into()),
        ("nacl.secretbox_decrypt", Value::Nil, Map::new(), Value::Nil),
    ];
    for (function, data, keyword, expected) in cases {
        let label = format!("{function} {data} {keyword:?}");
        assert_eq!(call(&context(&[]), function, data, keyword), Ok(expected), "{label}");
    }
}

#[test]
fn what_is_encrypted_is_decrypted_and_never_twice_the_same() {
    for (kind, keys) in [("enc", map! {"pk" => PUBLIC}), ("secretbox_encrypt", map! {"sk" => SECRET})] {
        let [one, other] =
            [(), ()].map(|()| call(&context(&[]), &format!("nacl.{kind}"), PLAINTEXT.into(), keys.clone()).unwrap());
        assert_ne!(one, other);
        let open = if kind == "enc" { "nacl.dec" } else { "nacl.secretbox_decrypt" };
        for data in [one, other] {
            assert_eq!(call(&context(&[]), open, data, map! {"sk" => SECRET}), Ok(PLAINTEXT.into()), "{kind}");
        }
    }
}

#[test]
fn mistakes_are_errors_without_secrets() {
    let changed = SEALED.replace("Hhkx", "Hhky");
    let cases: [(&str, Value, Map, &str); 9] = [
        ("nacl.dec", changed.into(), map! {"sk" => SECRET}, "decrypting the data failed: it was changed, "),
        ("nacl.dec", SEALED.into(), map! {"sk" => PUBLIC}, "decrypting the data failed: it was changed, "),
        ("nacl.dec", IN_SECRET_BOX.into(), map! {"sk" => SECRET}, "decrypting the data failed: it was changed, "),
        (
            "nacl.secretbox_decrypt",
            "AAEC".into(),
            map! {"sk" => SECRET},
            "decrypting the data failed: it was changed, ",
        ),
        ("nacl.dec", "no base64".into(), map! {"sk" => SECRET}, "the encrypted data is not base64: "),
        (
            "nacl.dec",
            SEALED.into(),
            map! {"sk" => "c2hvcnQ="},
            "the secret key of the setting is invalid: expected 32 ",
        ),
        ("nacl.dec", SEALED.into(), map! {"sk_file" => "/nonexistent/nacl"}, "no secret key found: cannot read "),
        ("nacl.enc", 71234.into(), map! {"pk" => PUBLIC}, "the data is invalid: expected a text; "),
        (
            "nacl.enc",
            "x".into(),
            map! {"pk" => PUBLIC, "box_type" => "box"},
            "box_type is invalid: expected sealedbox ",
        ),
    ];
    for (function, data, keyword, expected) in cases {
        let error = call(&context(&[]), function, data, keyword).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
        assert!(![SECRET, "c2hvcnQ=", "71234"].iter().any(|secret| error.contains(secret)), "{error}");
    }
}

#[test]
fn keys_are_created_and_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let context = context(&[]);
    let keygen = |keyword| context.call("nacl.keygen", Args { keyword, ..Args::default() }).map_err(message);

    let both = keygen(Map::new()).unwrap();
    let keys = ["sk", "pk"].map(|name| both.get(name).unwrap().to_string());
    let sealed = call(&context, "nacl.enc", "x".into(), map! {"pk" => keys[1].as_str()}).unwrap();
    assert_eq!(call(&context, "nacl.dec", sealed, map! {"sk" => keys[0].as_str()}), Ok("x".into()));

    let (sk, pk) = (path("nacl"), path("nacl.pub"));
    assert_eq!(keygen(map! {"sk_file" => sk.as_str()}), Ok(format!("saved sk_file:{sk}  pk_file: {pk}").into()));
    assert_eq!(fs::metadata(&sk).unwrap().permissions().mode() & 0o777, 0o600);
    let (secret, public) = (text("nacl"), text("nacl.pub"));
    let exist = format!("sk_file:{sk} and pk_file:{pk} already exist.");
    assert_eq!(keygen(map! {"keyfile" => sk.as_str()}), Err(exist));
    fs::remove_file(&pk).unwrap();
    assert_eq!(keygen(map! {"sk_file" => sk.as_str()}), Ok(format!("saved pk_file: {pk}").into()));
    assert_eq!((text("nacl"), text("nacl.pub")), (secret, public));

    fs::write(path("broken"), "no key").unwrap();
    let error = keygen(map! {"sk_file" => path("broken")}).unwrap_err();
    assert!(error.starts_with("the secret key of the file ") && !fs::exists(path("broken.pub")).unwrap(), "{error}");
}

#[test]
fn files_are_encrypted_and_decrypted() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("plain"), PLAINTEXT).unwrap();
    fs::write(path("sk"), format!("{SECRET}\n")).unwrap();
    fs::write(path("pk"), PUBLIC).unwrap();
    let context = context(&[]);
    let keys = |more: Map| -> Map {
        map! {"sk_file" => path("sk"), "pk_file" => path("pk")}.into_iter().chain(more).collect()
    };

    let out = path("sealed");
    let wrote = call(&context, "nacl.enc_file", path("plain").into(), keys(map! {"out" => out.as_str()}));
    assert_eq!(wrote, Ok(format!("Wrote: {out}").into()));
    assert_eq!(call(&context, "nacl.dec_file", out.as_str().into(), keys(Map::new())), Ok(PLAINTEXT.into()));
    let exists = call(&context, "nacl.dec_file", out.as_str().into(), keys(map! {"out" => path("plain")}));
    assert_eq!(exists, Err(format!("file:{} already exist.", path("plain"))));
    let opened = path("opened");
    call(&context, "nacl.dec_file", out.into(), keys(map! {"out" => opened.as_str()})).unwrap();
    assert_eq!(fs::read_to_string(&opened).unwrap(), PLAINTEXT);
    assert_eq!(fs::metadata(&opened).unwrap().permissions().mode() & 0o777, 0o600);
    let missing = call(&context, "nacl.enc_file", path("none").into(), keys(Map::new()));
    assert_eq!(missing, Err(format!("the file {} does not exist", path("none"))));
}

#[test]
fn settings_come_from_arguments_options_and_pillar() {
    let in_pillar = |keys: Map| {
        let context = context(&[]);
        *context.minion.pillar.write() = Arc::new(map! {"nacl.config" => keys});
        context
    };
    let in_options = |keys: Map| Context {
        run_opts: Some(Arc::new(map! {"nacl.config" => keys})),
        ..in_pillar(map! {"sk" => PUBLIC})
    };
    assert_eq!(call(&in_pillar(map! {"sk" => SECRET}), "nacl.dec", SEALED.into(), Map::new()), Ok(PLAINTEXT.into()));
    let secret_box = map! {"sk" => SECRET, "box_type" => "secretbox"};
    for context in [in_pillar(secret_box.clone()), in_options(secret_box)] {
        assert_eq!(call(&context, "nacl.dec", IN_SECRET_BOX.into(), Map::new()), Ok(PLAINTEXT.into()));
        let sealed = map! {"box_type" => "sealedbox"};
        assert_eq!(call(&context, "nacl.dec", SEALED.into(), sealed), Ok(PLAINTEXT.into()));
    }
}

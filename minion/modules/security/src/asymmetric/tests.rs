//! Signatures of Brine and of Salt, and the messages of Salt.

use brine_function::Args;
use brine_value::list;

use super::*;
use crate::testing::context;

fn call(context: &Context, function: &str, keyword: Map) -> Result<Value, String> {
    context.call(&format!("asymmetric.{function}"), Args::keyword(keyword)).map_err(CallError::message)
}

/// The private and the public key.
fn pair(context: &Context, keyword: Map) -> (Value, Value) {
    let private = context.call("x509.create_private_key", Args::keyword(keyword)).unwrap();
    let public = context.call("x509.get_public_key", Args::positional([private.clone()])).unwrap();
    (private, public)
}

#[test]
fn signatures_are_verified() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("data"), "some data").unwrap();
    let valid = |by: &str| Ok(Value::from(map! {"res" => true, "message" => by}));
    for (number, keyword) in
        [map! {"algo" => "rsa"}, map! {"algo" => "ec"}, map! {"algo" => "ed25519"}, map! {"passphrase" => "x"}]
            .into_iter()
            .enumerate()
    {
        let context = &context;
        let passphrase = keyword.get("passphrase").cloned();
        let private = context.call("x509.create_private_key", Args::keyword(keyword)).unwrap();
        let of_key = Args { positional: vec![private.clone()], keyword: map! {"passphrase" => passphrase.clone()} };
        let public = context.call("x509.get_public_key", of_key).unwrap();
        let signed = |more: Map| {
            let mut keyword = map! {"privkey" => private.clone(), "passphrase" => passphrase.clone()};
            keyword.extend(more);
            call(context, "sign", keyword).unwrap()
        };
        let file = path(&format!("{number}.sig"));
        assert_eq!(
            signed(map! {"filename" => path("data"), "path" => &file}),
            Value::from(format!("Signature written to '{file}'"))
        );
        for signature in [
            signed(map! {"text" => "some data"}),
            signed(map! {"text" => "some data", "raw" => true}),
            signed(map! {"filename" => path("data")}),
            file.as_str().into(),
            format!("file://{file}").into(),
        ] {
            let keyword = map! {"pubkey" => public.clone(), "signature" => signature};
            let with =
                |more: Map| keyword.iter().map(|(key, value)| (key.clone(), value.clone())).chain(more).collect();
            assert_eq!(call(context, "verify", with(map! {"text" => "some data"})), valid("The signature is valid"));
            assert_eq!(
                call(context, "verify", with(map! {"filename" => path("data")})),
                valid("The signature is valid")
            );
            let other = call(context, "verify", with(map! {"text" => "other data"})).unwrap();
            assert_eq!(other.get("res"), Some(&false.into()));
            assert!(
                other
                    .get("message")
                    .unwrap()
                    .to_string()
                    .starts_with("Failed checking signature: Invalid signature for key ")
            );
        }
    }
}

#[test]
fn required_signers_must_have_signed() {
    let context = context(&[]);
    let [(a, pub_a), (b, pub_b), (_, pub_c)] = [(); 3].map(|()| pair(&context, map! {"algo" => "ec"}));
    let sign = |key: &Value| call(&context, "sign", map! {"privkey" => key.clone(), "text" => "t"}).unwrap();
    let (by_a, by_b) = (sign(&a), sign(&b));
    let none = "None of the public keys listed in signed_by_any provided a valid signature";
    let all = "All required keys have provided a signature";
    for (signatures, any, every, is_valid, message) in [
        (list![by_a.clone()], list![pub_c.clone(), pub_a.clone()], list![], true, all),
        (by_a.clone(), pub_a.clone(), Value::Nil, true, all),
        (list![by_a.clone()], list![pub_b.clone(), pub_c.clone()], list![], false, none),
        (list![by_a.clone(), by_b.clone()], list![], list![pub_a.clone(), pub_b.clone()], true, all),
        (
            list![by_a.clone()],
            list![pub_a.clone()],
            list![pub_b.clone()],
            false,
            "Failed while checking `signed_by_all`: ",
        ),
        // A signature counts once.
        (
            list![by_a.clone()],
            list![],
            list![pub_a.clone(), pub_a.clone()],
            false,
            "Failed while checking `signed_by_all`: ",
        ),
    ] {
        let keyword = map! {"text" => "t", "signature" => signatures, "signed_by_any" => any, "signed_by_all" => every};
        let report = call(&context, "verify", keyword.clone()).unwrap();
        assert_eq!(report.get("res"), Some(&is_valid.into()), "{report}");
        assert!(report.get("message").unwrap().to_string().starts_with(message), "{report}");
    }
    for (keyword, message) in [
        (
            map! {"text" => "t", "filename" => "/f", "signature" => "x"},
            "`text` and `filename` arguments are mutually exclusive",
        ),
        (map! {"text" => "t"}, "Missing `signature` parameter"),
        (map! {"text" => "t", "signature" => "x"}, "Missing pubkey(s) to check against"),
        (map! {"signature" => "x", "pubkey" => "x"}, "Missing data to verify. Either specify `text` or `filename`"),
        (map! {"filename" => "/none/f", "signature" => "x", "pubkey" => "x"}, "Path '/none/f' does not exist"),
        (
            map! {"text" => "t", "signature" => "x", "pubkey" => "x", "signed_by_any" => list!["x"]},
            "Either specify pubkey + signature or signed_by_(any|all)",
        ),
        (
            map! {"text" => "t", "signature" => list!["x"], "pubkey" => "x"},
            "`signature` must be a string or bytes when verifying a single signing `pubkey`",
        ),
    ] {
        assert_eq!(call(&context, "verify", keyword), Err(message.to_owned()));
    }
    assert_eq!(call(&context, "sign", map! {"privkey" => a}), Err("Either `text` or `filename` is required".into()));
}

/// Signatures of the text `some data` by Salt 3008.5, whose salt is as long as the key permits.
#[test]
fn signatures_of_salt_are_verified() {
    let context = context(&[]);
    for (public, digest, signature) in SALT {
        let keyword = map! {"text" => "some data", "pubkey" => public, "digest" => digest, "signature" => signature};
        let report = call(&context, "verify", keyword).unwrap();
        assert_eq!(report.get("res"), Some(&true.into()), "{digest}: {report}");
    }
}

/// Public key, hash function and signature.
const SALT: [(&str, &str, &str); 4] = [
    (
        "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzowYv5kRQ7rx1QacY6TYCllaDWul2M5V0wT/IfK3Rcb8h1zwORe7io5WYKvUQ55L0xTSefSkJQ85yxuvx4dYeYntEDH2RR8pO0yx3T4rh5ZgUI66SbdJGdDuWe38TrCxL1oyP+VjF3h24DEgkZXkBMWRJOBxK/LhLMuqZZfRUXI/71X/CQbknWc02aaitbjoHXog2wKxUjsfjS2wIregl5vxe6M1YAnGvd/7pqagx13MLqxI9halXQzo+3hk7gmPvRQZvToYWlCBtTzWHDWnJYdFqQVJUHzkm3bxhfTQqGVSJb3nlAjhlNcFLYEd3KdLJjPFKneQdn5blPXyZWOcTQIDAQAB",
        "sha256",
        "SD7xMPUO9lN16UfHgew4ZMzZu1kyPncxPi11skOoApJiP2OaIYy0BmQ05jPfF2BpgzB7fM4Z7v43k3JQbaskGJu0fGTvnwto7HE9HoHDJa8mQB+aCsKArEwSwirXztZkM0+N1/0d63r+5PCwnKUC6oZWCkR42Y9ZfVZarrTOwBn6H585808ZrmjLQOE/oCE3F+Dt9MdLdYaK95Sr02Bu6it/+eNKI0/fT30V85bBZFcr2nUq5LrKBQHQ/nTgySUl+gve17NiKis9XvIFqkHL4cO4XxUGo+0A6lWLIGIh6diFXsCnKTsLzYxqpRexiBIk5S97VMmnaihjdeY1ZcpPiw==",
    ),
    (
        "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA3CSo7HMnN36fdl+vHocKDNJqJQIeUz+lurXkqt05lA/6i6rLQ4zx4abIRZfDpNelfB+tFwc0jJV9V3vwgc2zpLESxnR2aTC+LqX+MPnyIFjtqsPSFpP/OK/SNVvLFWHmk6a8SnnP0eQIbs1d/DSRFoQJ0jR1IhAiyDmk+OuC0CAyauCiHAtH7qXbHRPGSOBKEGizVyivXeHVkUkmeX1mOHZ08j+syf2Z3dcHnnu1Otpk20+KdygJPTXP+bk39nBDxAantNVlc0Bu50R9UcUp0VojZbfDQT2zCZUuQ0Zgj4Mpr5wg+shqxfTc3tH0U5DSxkk4OQd5A8xa/VQUcvkBUQIDAQAB",
        "sha512",
        "ruBriwSCCDmJ+w/899+komiyhx+uyTcj6NVZh+TjlKEKKPJLToP7OAW9U4fTjNMnmYwTGLr1xjFNzpyqa11F4WvlJLvtcyi49o1d44FtHOCk2R1Tcel8FxDOuUgcu4FgLQosK+sS1O8LYguBvPSEqoF6bevYD2x9AlHmTch/sTVc91bkHN7HlrJlabWfDP8Ow/bGMGZiJmqfp7LebTVXPknEEqFWCi+D8+/nN10G1LWWT9pdC/zvZKbo4k/4prjbFBsMviR4G6DR9SlqDwHL1H8uNEDwn0k9/6eReKmPcKU64cc7rkH0E11GRebXHmZQQ14iot+fknCV8HKwz3Va3Q==",
    ),
    (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/bnDEzfMv7l+sgtqVnE3XvUKb1HeGWJQgp1sWRjUZeKPm4j3zR+fcHmUX2bZIV/KO4T0mgU5tV6EdXVPgiCkGw==",
        "sha256",
        "MEUCIBDubi/XC7S951c5+AJLbl5NVMLcHABmNloN1wWWpQ90AiEA/HHjuO2lemAzAbg7VTSSy47krpr8uRpA33WF+EFsLDI=",
    ),
    (
        "MCowBQYDK2VwAyEAzfXy8FNxN66Yace5o5JgMXLI9H0lARj5Mb8tt9U20So=",
        "sha256",
        "FCmEbPVEJerLux8DuO8+wMAKEm+ksSypTaE+DgaUZQwVRTshV6xz6SBD7+latMBITdieSg0ghZ6Q+H6ONVufBg==",
    ),
];

#[test]
fn states_verify_their_sources() {
    let plain = context(&[]);
    let (private, public) = pair(&plain, map! {"algo" => "ed25519"});
    let (_, other) = pair(&plain, map! {"algo" => "ed25519"});
    let signature = call(&plain, "sign", map! {"privkey" => private, "text" => "x"}).unwrap();
    let text = signature.to_string();
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("f").display().to_string();
    let apply = |function: &str, more: Map| {
        let mut keyword = map! {"name" => name.as_str(), "source" => "salt://f", "sig_backend" => "asymmetric"};
        keyword.extend(more);
        let state = brine_testing::state_context(false, context(&[("f", "x"), ("f.sig", &text)]));
        let report = state.call.minion.states.call(&state, function, Args::keyword(keyword)).unwrap();
        let cached = state.call.call("cp.is_cached", Args::positional(["salt://f".into()])).unwrap();
        (report.get("result").and_then(Value::as_bool), report.get("comment").unwrap().to_string(), cached)
    };
    for (signature, more, is_valid) in [
        (Value::from("salt://f.sig"), map! {"signed_by_any" => list![public.clone()]}, true),
        (list!["salt://f.sig", "salt://none"], map! {"signed_by_all" => public.clone()}, true),
        (signature, map! {"signed_by_any" => public.clone()}, true),
        (Value::from("salt://f.sig"), map! {"signed_by_any" => list![other.clone()]}, false),
        (Value::from("salt://none"), map! {"signed_by_any" => list![public]}, false),
        (Value::from("salt://f.sig"), map! {}, false),
    ] {
        let mut keyword = map! {"signature" => signature.clone()};
        keyword.extend(more);
        let (result, comment, _) = apply("file.managed", keyword);
        assert_eq!((result, Path::new(&name).exists()), (Some(is_valid), is_valid), "{signature}: {comment}");
        _ = std::fs::remove_file(&name);
    }
    let unknown = map! {"signature" => "salt://f.sig", "sig_backend" => "nope"};
    let (result, comment, _) = apply("file.managed", unknown);
    assert!(result == Some(false) && comment.contains("the nope module was not loaded"), "{comment}");
    // Without a valid signature, the archive does not stay in the cache.
    let keyword = map! {"signature" => "salt://f.sig", "signed_by_all" => other, "archive_format" => "tar"};
    let (result, comment, cached) = apply("archive.extracted", keyword);
    assert_eq!((result, cached), (Some(false), "".into()), "{comment}");
    assert!(comment.contains("Failed while checking `signed_by_all`"), "{comment}");
}

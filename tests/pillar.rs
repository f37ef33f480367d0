//! Pillar from a master: functions in its files, `ext_pillar`, the cache, and errors for the minion.

use crate::support::{System, stdout};
use brine_value::{list, map};

#[tokio::test(flavor = "multi_thread")]
async fn minion_receives_only_its_own_complete_pillar() {
    let mut system = System::start("ext_pillar:\n  - cmd_yaml: 'echo \"{external: %s}\"'\npillar_cache: True\n").await;
    system.write("srv/pillar/top.sls", "base: {'*': [all], web1: [web], db1: [db]}\n");
    let all = "id: {{ opts.id }} {{ grains.id }} {{ salt['grains.get']('id') }}\nrole: {{ salt['grains.filter_by']({'web': 'w', 'db': 'd'}, grain='role') }}\n\
               host: {{ salt['cmd.run']('echo of the master') }}\nrunner: {{ salt['saltutil.runner']('test.arg', arg=['x']).args[0] }}\n";
    system.write("srv/pillar/all.sls", all);
    system.write("srv/pillar/web.sls", "secret: of-web\n");
    system.write("srv/pillar/db.sls", "secret: of-db\n");
    system.write("srv/salt/ok.sls", "ok: test.nop\n");
    for (id, role) in [("web1", "web"), ("db1", "db")] {
        system.configure_minion(id, &format!("grains: {{role: {role}}}\n"));
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    let expected = |id: &str, role: &str, secret: &str| {
        map! {
            "id" => format!("{id} {id} {id}"), "role" => role, "host" => "of the master", "runner" => "x",
            "secret" => secret, "external" => id,
        }
    };
    let both = map! {"web1" => expected("web1", "w", "of-web"), "db1" => expected("db1", "d", "of-db")};
    assert_eq!(system.salt_json(&["*", "pillar.raw"]), both.into());

    // A cached pillar is used until a request bypasses it.
    system.write("srv/pillar/web.sls", "secret: {{ changed }}\n");
    let raw = |system: &System| system.salt_json(&["web1", "pillar.items", "unmask=True"]);
    assert_eq!(raw(&system), map! {"web1" => expected("web1", "w", "of-web")}.into());
    assert_eq!(stdout(&system.tool("salt-run", &["pillar.clear_pillar_cache", "web1"])), "True\n");
    let error = "Rendering SLS 'web' failed. Please see master log for details.\n  --> web.sls:1";
    let answer = raw(&system);
    let report = answer.get("web1").unwrap();
    assert_eq!((report.get("_errors"), report.get("secret")), (Some(&list![error]), None));
    let refused = list!["Pillar failed to render with the following messages:", error];
    assert_eq!(system.salt_json(&["web1", "state.apply", "ok"]), map! {"web1" => refused}.into());

    // An invalid pillar is not cached; a refresh renders it again.
    system.write("srv/pillar/web.sls", "secret: mended\n");
    assert_eq!(raw(&system), map! {"web1" => expected("web1", "w", "mended")}.into());
    system.write("srv/pillar/web.sls", "secret: last\n");
    system.salt_json(&["web1", "saltutil.refresh_pillar"]);
    assert_eq!(system.salt_json(&["web1", "pillar.raw", "secret"]), map! {"web1" => "last"}.into());
    let text = stdout(&system.tool("salt-run", &["pillar.show_pillar", "db1", "--out=json"]));
    assert!(text.contains("of-db") && !text.contains("last"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_request_only_pillar_sources_that_the_master_allows() {
    let options = "nodegroups: {web: 'web*', db: 'db*'}\non_demand_ext_pillar: [nodegroups, cmd_yaml]\n";
    let mut system = System::start(options).await;
    system.write("srv/pillar/top.sls", "base: {'*': [all]}\n");
    system.write("srv/pillar/all.sls", "own: 1\n");
    system.start_minion("web1").await;
    let ext = |entry: &str| {
        let answer = system.salt_json(&["web1", "pillar.ext", entry, "pillar={over: 2}", "unmask=True"]);
        answer.get("web1").unwrap().clone()
    };
    assert_eq!(ext("{nodegroups: groups}"), map! {"own" => 1, "groups" => list!["web"], "over" => 2}.into());
    for (entry, error) in [
        ("{cmd_yaml: id}", "ext_pillar cmd_yaml is not available on demand"),
        ("{gpg: _}", "ext_pillar gpg is not allowed on demand"),
    ] {
        let answer = ext(entry);
        assert!(answer.get("_errors").unwrap().to_string().contains(error), "{answer}");
    }
    // Neither of them is the minion's pillar.
    assert_eq!(system.salt_json(&["web1", "pillar.raw"]), map! {"web1" => map! {"own" => 1}}.into());
    assert!(!stdout(&system.tool("salt", &["-I", "over:2", "test.ping"])).contains("web1"));
    assert_eq!(system.salt_json(&["-I", "own:1", "test.ping"]), map! {"web1" => true}.into());
}

/// Starts a web server that returns the id in the request, until it gets another request.
fn web_server() -> u16 {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut asked, mut part) = (Vec::new(), [0; 1024]);
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let length = stream.read(&mut part).unwrap();
                asked.extend_from_slice(&part[..length]);
            }
            let asked = String::from_utf8(asked).unwrap();
            let (status, body) = match asked.split(' ').nth(1) {
                Some("/web1?role=front") => ("200 OK", r#"{"from": {"web": "server"}, "list": [1, 2]}"#),
                _ => ("404 Not Found", "nothing"),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_server_extends_the_pillar() {
    let url = format!("http://127.0.0.1:{}/%s?role=<role>", web_server());
    let external = format!("ext_pillar:\n  - http_json: {{url: '{url}', with_grains: True}}\n");
    let mut system = System::start(&external).await;
    system.write("srv/pillar/top.sls", "base: {'*': [all]}\n");
    system.write("srv/pillar/all.sls", "from: {files: here}\n");
    for (id, role) in [("web1", "front"), ("db1", "back")] {
        system.configure_minion(id, &format!("grains: {{role: {role}}}\n"));
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    let web1 = map! {"from" => map! {"files" => "here", "web" => "server"}, "list" => list![1, 2]};
    assert_eq!(system.salt_json(&["web1", "pillar.raw"]), map! {"web1" => web1}.into());
    // A failing server must not lead to a partial pillar.
    let db1 = system.salt_json(&["db1", "pillar.raw"]);
    let errors = db1.get("db1").and_then(|pillar| pillar.get("_errors")).map(ToString::to_string).unwrap_or_default();
    assert!(errors.contains("http_json"), "{db1}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_masters_key_opens_boxes_in_pillar_files() {
    let mut system = System::start("nacl.config: {sk_file: ROOT/nacl, pk_file: ROOT/nacl.pub}\n").await;
    let key = system.path("nacl").display().to_string();
    let made = stdout(&system.tool("salt-run", &["salt.cmd", "nacl.keygen", &format!("sk_file={key}")]));
    assert_eq!(made, format!("saved sk_file:{key}  pk_file: {key}.pub\n"));
    let encrypt = |text: &str| stdout(&system.tool("salt-run", &["salt.cmd", "nacl.enc", text])).trim().to_owned();
    let (one, other) = (encrypt("s3cret"), encrypt("line: [1]\nnext"));
    assert_ne!(one, encrypt("s3cret"));
    system.write("srv/pillar/top.sls", "base: {'*': [all, template]}\n");
    system.write("srv/pillar/all.sls", &format!("#!jinja|yaml|nacl\npasswords: ['NACL[{one}]']\n"));
    let template = format!("file: {{{{ salt['nacl.dec']('{other}') | tojson }}}}\n");
    system.write("srv/pillar/template.sls", &template);
    system.start_minion("web1").await;
    let opened = map! {"passwords" => list!["s3cret"], "file" => "line: [1]\nnext"};
    assert_eq!(system.salt_json(&["web1", "pillar.raw"]), map! {"web1" => opened}.into());

    // A minion has no key: it cannot open the boxes of the master, and no state runs with a pillar that failed.
    let refused = system.salt_json(&["web1", "nacl.dec", &one]).get("web1").unwrap().to_string();
    assert!(refused.contains("no secret key found: "), "{refused}");
    system.write("nacl", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    let report = system.salt_json(&["web1", "pillar.items", "unmask=True"]);
    let errors = report.get("web1").and_then(|pillar| pillar.get("_errors")).unwrap();
    assert!(errors.to_string().contains("Rendering SLS 'all' failed. Please see master log for details."), "{errors}");
    assert!(system.master_log().contains("rendering by nacl failed: decrypting the data failed: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn stack_and_data_of_the_minion_extend_the_pillar() {
    let external = "ext_pillar:\n\
        - stack: {'grains:role': {web: ROOT/stack/web.cfg, db: ROOT/stack/db.cfg}}\n\
        - extra_minion_data_in_pillar: {include: ['site:rack']}\n";
    let mut system = System::start(external).await;
    system.write("srv/pillar/top.sls", "base: {'*': [all]}\n");
    system.write("srv/pillar/all.sls", "roles: [common, web]\n");
    system.write("stack/web.cfg", "{% for role in pillar.roles %}\nroles/{{ role }}.yml\n{% endfor %}\n");
    system.write("stack/roles/common.yml", "own: {a: 1, list: [1]}\n");
    let web = "own: {b: {{ stack.own.a + 1 }}, list: [{__: merge-first}, 0], id: {{ __salt__['grains.get']('id') }}}\n";
    system.write("stack/roles/web.yml", web);
    system.configure_minion(
        "web1",
        "grains: {role: web}\npass_to_ext_pillars: ['site:rack', none]\nsite: {rack: 5, other: 6}\n",
    );
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let own = map! {"a" => 1, "list" => list![0, 1], "b" => 2, "id" => "web1"};
    let pillar = map! {"roles" => list!["common", "web"], "own" => own, "site" => map! {"rack" => 5}};
    assert_eq!(system.salt_json(&["web1", "pillar.raw"]), map! {"web1" => pillar}.into());
    system.write("stack/roles/common.yml", "own: {a: {{ 1 + }}\n");
    let report = system.salt_json(&["web1", "pillar.items", "unmask=True"]);
    let errors = report.get("web1").and_then(|pillar| pillar.get("_errors")).unwrap().to_string();
    assert!(errors.contains("Stack pillar template render error in"), "{errors}");
}

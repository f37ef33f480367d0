//! The processes of Python: crashes, calls that hang, restarts, ends.

use super::*;

#[test]
fn a_crash_fails_running_calls_and_the_next_call_restarts_python() {
    let fixture = fixture();
    assert_eq!(fixture.error("own.crashes"), "the Python process ended during the call: exit status: 7");
    assert_eq!(fixture.plain("own.list"), Ok(list!["a", 2]));
    assert_eq!(fixture.error("own.dies"), "the Python process ended during the call: signal: 9 (SIGKILL)");
    assert_eq!(fixture.plain("own.list"), Ok(list!["a", 2]));
}

#[test]
fn hanging_functions_are_cancelled() {
    let fixture = fixture();
    let pid = fixture.plain("own.pid").unwrap();
    let deadline = || Some(Instant::now() + Duration::from_millis(200));
    for function in ["own.spins", "own.asks"] {
        let result = fixture.call_in("modules", function, Args::default(), deadline(), &brine());
        assert_eq!(result, Err(PythonError::Cancelled("its deadline has passed")), "{function}");
    }
    assert_eq!(fixture.plain("own.pid"), Ok(pid.clone()), "a function that can be interrupted costs no process");
    let path = fixture.path("started");
    let ended = Brine { ends_with: Some(path.clone()), ..brine() };
    let args = Args::positional([path.display().to_string().into()]);
    let hangs = fixture.call_in("modules", "own.hangs", args, None, &ended);
    assert_eq!(hangs, Err(PythonError::Cancelled("its job was ended")));
    assert_ne!(fixture.plain("own.pid"), Ok(pid), "a process with a function that hangs is replaced");
}

#[test]
fn a_thousand_calls_run_at_once() {
    let fixture = fixture();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..1000)
            .map(|n: i64| {
                let fixture = &fixture;
                scope.spawn(move || fixture.call("own.ask", Args::positional([n.to_string().into()])))
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.join().unwrap(), Ok(format!("{n}!a").into()));
        }
    });
}

#[test]
fn a_restart_loads_replaced_files_and_running_calls_end_in_the_old_process() {
    let fixture = fixture();
    let pid = fixture.plain("own.pid").unwrap();
    fs::write(
        fixture.path("modules/own_file.py"),
        "__virtualname__ = 'own'\ndef __virtual__():\n    return 'own'\ndef list_():\n    return 'new'\n",
    )
    .unwrap();
    assert_eq!(fixture.plain("own.pid"), Ok(pid.clone()));
    let (go, started) = (fixture.path("go"), fixture.path("go.started"));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| fixture.call("own.waits", Args::positional([go.display().to_string().into()])));
        wait_until(|| started.exists());
        fixture.python.restart();
        assert_eq!(fixture.plain("own.list_"), Ok("new".into()));
        fs::write(&go, "").unwrap();
        assert_eq!(waits.join().unwrap(), Ok(pid));
    });
}

#[test]
fn an_idle_process_ends() {
    let fixture = with_settings(Settings { idle: Duration::from_millis(100), ..Settings::default() });
    let pid = fixture.plain("own.pid").unwrap().to_string();
    let process = Path::new("/proc").join(pid);
    wait_until(|| !process.exists());
    assert!(!fixture.python.is_running());
    assert_eq!(fixture.plain("own.list"), Ok(list!["a", 2]));
}

#[test]
fn a_lease_keeps_the_process_of_returned_functions_alive() {
    let fixture = with_settings(Settings { idle: Duration::from_millis(100), ..Settings::default() });
    let source = "import os\ndef run():\n    return {'of': [os.getpid, lambda a: a * 2]}\n";
    let render = |source: &str| {
        let args = ["py".into(), "".into(), "x.sls".into(), source.into(), Value::map(), "base".into()];
        let call = Call { kind: "render", function: "x.sls", args: Args::positional(args), ..Call::default() };
        fixture.python.call_leasing(call, Setup::default, &brine()).unwrap()
    };
    assert!(render("def run():\n    return {'a': 1}\n").1.is_none());
    let (data, lease) = render(source);
    let (leases, functions) = (Leases::default(), data.get("of").unwrap().as_list().unwrap());
    leases.add(lease.unwrap());
    let call = |function: &Value, args: Args| {
        let token = token(function).unwrap();
        let lease = leases.with(token).unwrap();
        let call = Call { kind: "kept", function: token, args, ..Call::default() };
        fixture.python.call_leased(&lease, call, &brine())
    };
    let pid = call(&functions[0], Args::default()).unwrap();
    // Meanwhile, other modules are loaded by a new process.
    fixture.python.restart();
    assert_ne!(fixture.plain("own.pid").unwrap(), pid);
    assert_eq!(call(&functions[1], Args::positional([4.into()])), Ok(8.into()));
    assert_eq!(call(&functions[0], Args::default()), Ok(pid.clone()));
    assert!(leases.clone().with("00").is_none());
    let process = Path::new("/proc").join(pid.to_string());
    assert!(process.exists());
    drop(leases);
    wait_until(|| !process.exists());
}

use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ui(progress_wanted: bool) -> (Ui, Sink, Sink) {
    let (out, err) = (Sink::default(), Sink::default());
    let ui = Ui {
        out: Box::new(out.clone()),
        err: Box::new(err.clone()),
        colours: Colours::OFF,
        progress_wanted,
        progress_shown: false,
    };
    (ui, out, err)
}

#[test]
fn options_override_the_terminal_and_no_color() {
    for (choice, terminal, no_color, on) in [
        (ColourChoice::Auto, true, None, true),
        (ColourChoice::Auto, true, Some(""), true),
        (ColourChoice::Auto, true, Some("1"), false),
        (ColourChoice::Auto, false, None, false),
        (ColourChoice::Never, true, None, false),
        (ColourChoice::Always, false, Some("1"), true),
    ] {
        let colours = choice.colours(terminal, no_color);
        let expected = if on { Colours::ON } else { Colours::OFF };
        assert_eq!(colours, expected, "{choice:?} {terminal} {no_color:?}");
    }
}

#[test]
fn text_is_plain_without_colours() {
    assert_eq!(Colours::ON.paint(Colour::LightYellow, "x"), "\x1b[0;1;33mx\x1b[0;0m");
    assert_eq!(Colours::OFF.paint(Colour::LightYellow, "x"), "x");
}

#[test]
fn progress_is_removed_before_output() {
    let (mut ui, out, err) = ui(true);
    ui.progress("1 of 2").unwrap();
    ui.progress("2 of 2").unwrap();
    ui.print("done").unwrap();
    ui.print_error("really").unwrap();
    assert_eq!(*out.0.lock().unwrap(), b"done\n");
    assert_eq!(*err.0.lock().unwrap(), b"\r\x1b[K1 of 2\r\x1b[K2 of 2\r\x1b[Kreally\n");
}

#[test]
fn a_bar_is_full_at_the_end() {
    for (count, all, expected) in [
        (0, 3, "[------------------------------]   0%"),
        (1, 3, "[##########--------------------]  33%"),
        (999, 1000, "[#############################-]  99%"),
        (3, 3, "[##############################] 100%"),
        (5, 3, "[##############################] 100%"),
        (0, 0, "[##############################] 100%"),
    ] {
        assert_eq!(bar(count, all), expected, "{count} of {all}");
    }
}

#[test]
fn progress_needs_a_terminal() {
    let (mut ui, _, err) = ui(false);
    ui.progress("1 of 2").unwrap();
    ui.clear_progress().unwrap();
    assert!(err.0.lock().unwrap().is_empty());
}

#[test]
fn a_closed_stderr_is_ignored() {
    let (mut ui, ..) = ui(false);
    ui.err = Box::new(Closed);
    ui.print_error("lost").unwrap();
}

#[test]
fn output_files_are_truncated_unless_appended_to() {
    let path = tempfile::tempdir().unwrap().keep().join("out");
    for (append, expected) in [(false, "x\n"), (true, "x\nx\n"), (false, "x\n")] {
        let (mut ui, out, _) = ui(false);
        ui.redirect(&path, append).unwrap();
        ui.print("x").unwrap();
        assert!(out.0.lock().unwrap().is_empty());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

use super::*;
use crate::parser::read_all;

fn ids(text: &str) -> Result<String, String> {
    let located = brine_yaml::load_located(text).unwrap();
    let all: Vec<_> = read_all(&located, &Placeholders::new()).into_iter().map(Result::unwrap).collect();
    let order = sorted(&all.iter().collect::<Vec<_>>()).map_err(|(_, message)| message)?;
    Ok(order.into_iter().map(|index| all[index].id.as_str()).collect::<Vec<_>>().join(" "))
}

#[test]
fn order_and_requisites_change_the_order_of_the_file() {
    for (text, order) in [
        ("z: {runner.t.a: []}\na: {local.t.b: [{tgt: x}]}\nm: {wheel.t.c: []}", "z a m"),
        (
            "z: {runner.t.a: [{order: 3}]}\na: {runner.t.a: [{order: 1}]}\nm: {runner.t.a: []}\n\
             l: {runner.t.a: [{order: last}]}\nf: {runner.t.a: [{order: first}]}\nn: {runner.t.a: []}\n\
             e: {runner.t.a: [{order: -1}]}",
            "f a z m n e l",
        ),
        ("z: {runner.t.a: [{require: [{runner: a}]}]}\na: {runner.t.a: []}", "a z"),
        ("z: {runner.t.a: [{require: [a]}]}\na: {local.t.a: [{tgt: x}]}", "a z"),
        ("z: {runner.t.a: []}\na: {runner.t.a: [{require_in: [{runner: z}]}]}", "a z"),
        ("z: {runner.t.a: []}\na: {runner.t.a: [{prereq: [{runner: z}]}]}", "a z"),
        (
            "z: {runner.t.a: [{watch: [{cmd: 'a*'}]}]}\na1: {local.t.a: [{tgt: x}]}\na2: {local.t.a: [{tgt: x}]}",
            "a1 a2 z",
        ),
        ("z: {runner.t.a: [{use: [{runner: nothing}]}]}\na: {runner.t.a: []}", "z a"),
    ] {
        assert_eq!(ids(text).as_deref(), Ok(order), "{text}");
    }
}

#[test]
fn missing_and_cyclic_requisites_are_errors() {
    for (text, message) in [
        (
            "z: {runner.t.a: [{require: [{runner: nope}]}]}",
            "'require' of 'z' names 'runner: nope', which is not a reaction to this event",
        ),
        (
            "z: {runner.t.a: [{require: [a]}]}\na: {runner.t.a: [{require: [z]}]}",
            "recursive requisites between 'z', 'a'",
        ),
    ] {
        assert_eq!(ids(text), Err(message.to_owned()), "{text}");
    }
}

use brine_value::list;

use super::*;
use crate::testing::{Scripted, context_with};

fn call(transcript: &str, function: &str, args: &[Value], keyword: Map) -> (Result<Value, String>, String) {
    let programs = Scripted::new(transcript);
    let args = brine_function::Args { positional: args.to_vec(), keyword };
    let result = context_with(map! {}, programs.clone()).call(function, args).map_err(CallError::message);
    (result, programs.ran())
}

const HDPARM: &str = "$ hdparm -mWNg /dev/sda
        |
        | /dev/sda:
        |  multcount     = 16 (on)
        |  write-caching =  1 (on)
        |  geometry      = 60801/255/63, sectors = 976773168, start = 0
        |  max sectors   = 976773168/976773168, HPA is disabled
        $ hdparm -N /dev/sdb
        |  max sectors   = 900/1000, HPA is enabled
        $ hdparm --yes-i-know-what-i-am-doing -Np950 /dev/sdb
        ";

#[test]
fn parameters_of_disks_are_parsed() {
    let (result, _) = call(HDPARM, "disk.hdparms", &["sda".into(), "mWNg".into()], map! {});
    let expected = map! {"/dev/sda" => map! {
        "multcount" => list![16, "on"], "write-caching" => list![1, "on"],
        "geometry" => list![60801, 255, 63, map! {"sectors" => "976773168", "start" => "0"}],
        "max_sectors" => list![976_773_168, 976_773_168, "HPA is disabled"],
    }};
    assert_eq!(result, Ok(expected.into()));
    let expected = map! {"/dev/sdb" => map! {"total" => 1000, "visible" => 900, "hidden" => 100}};
    assert_eq!(call(HDPARM, "disk.hpa", &["/dev/sdb".into()], map! {}).0, Ok(expected.into()));
    let (result, ran) = call(HDPARM, "disk.hpa", &["/dev/sdb".into(), "5%".into()], map! {});
    assert_eq!(
        (result, ran.lines().last()),
        (Ok(Value::Nil), Some("hdparm --yes-i-know-what-i-am-doing -Np950 /dev/sdb"))
    );
    for (args, error) in [
        (["sda".into(), "z".into()], "args are invalid: expected flags among aAbBcCdgHiJkMmNnQrRuW, got 'z'"),
        (["-z".into(), "N".into()], "'-z' cannot be used: it starts with '-' or is empty"),
    ] {
        assert_eq!(call(HDPARM, "disk.hdparms", &args, map! {}), (Err(error.to_owned()), String::new()));
    }
    let error = "size is invalid: expected sectors or percent, got '101%'";
    assert_eq!(call(HDPARM, "disk.hpa", &["sdb".into(), "101%".into()], map! {}).0, Err(error.to_owned()));
}

#[test]
fn attributes_are_parsed() {
    let transcript = "$ smartctl --attributes /dev/sda
            | smartctl 7.3 2022-02-28 r5338 [x86_64-linux] (local build)
            | === START OF READ SMART DATA SECTION ===
            | ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
            |   5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0
            | 194 Temperature_Celsius     0x0022   034   048   000    Old_age   Always       -       34 (Min/Max 14/48)
            |
            | 999 not an attribute
            ";
    let (result, _) =
        call(transcript, "disk.smart_attributes", &["sda".into()], map! {"values" => list!["value", "raw_value"]});
    let expected = map! {5 => map! {"value" => 100, "raw_value" => 0}, 194 => map! {"value" => 34, "raw_value" => "34 (Min/Max 14/48)"}};
    assert_eq!(result, Ok(expected.into()));
    let (result, _) = call(transcript, "disk.smart_attributes", &["sda".into()], map! {"attributes" => list![5]});
    assert_eq!(result.unwrap().as_map().unwrap().len(), 1);
}

#[test]
fn measurements_are_averaged() {
    let transcript = "$ iostat -x 1 2
            | Linux 6.18 (vm)  11/25/26  _x86_64_  (2 CPU)
            |
            | avg-cpu:  %user   %nice
            |           10.00   0.50
            |
            | Device            r/s     rkB/s
            | vda            200.00   4000.00
            | loop0            0.05      1.43
            |
            | avg-cpu:  %user   %nice
            |           20.00   0.25
            |
            | Device:           r/s     rkB/s
            | vda            100.00   0.00
            ";
    let (result, _) = call(transcript, "disk.iostat", &[1.into(), 2.into()], map! {});
    let expected = map! {
        "sys" => map! {"%user" => 15.0, "%nice" => 0.38},
        "vda" => map! {"r/s" => 150.0, "rkB/s" => 2000.0},
        "loop0" => map! {"r/s" => 0.05, "rkB/s" => 1.43},
    };
    assert_eq!(result, Ok(expected.into()));
    for args in [[0.into(), 5.into()], [3600.into(), 2.into()]] {
        let (result, ran) = call(transcript, "disk.iostat", &args, map! {});
        assert_eq!(result, Err("interval and count are invalid: expected 1 to 3600 seconds together".to_owned()));
        assert_eq!(ran, "");
    }
}

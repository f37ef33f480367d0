use proptest::prelude::*;

use super::*;
use crate::{list, map};

/// Generates any value.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        any::<Vec<u8>>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
            prop::collection::vec((inner.clone(), inner), 0..8)
                .prop_map(|pairs| Value::Map(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn packed_values_unpack_unchanged(value in any_value()) {
        prop_assert_eq!(unpack(&pack(&value)).unwrap(), value);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in any::<Vec<u8>>()) {
        let _ = unpack(&bytes);
        let _ = entries(&bytes);
    }

    #[test]
    fn a_truncated_value_is_refused(value in any_value(), cut in any::<prop::sample::Index>()) {
        let packed = pack(&value);
        let cut = cut.index(packed.len());
        prop_assert!(unpack(&packed[..cut]).is_err());
    }
}

#[test]
fn entries_return_packed_values() {
    let packed = pack_map(&map! {"a" => list![1, 2], 5 => "x"});
    let entries = entries(&packed).unwrap();
    assert_eq!(entries[0].key, Some("a"));
    assert_eq!(unpack(entries[0].value), Ok(list![1, 2]));
    assert_eq!(entries[1].key, None);
    assert_eq!(unpack(entries[1].value), Ok(Value::from("x")));
}

#[test]
fn estimated_memory_covers_what_is_allocated() {
    let count = 5000u32;
    let list = |item: &[u8]| [&[0xdd][..], &count.to_be_bytes(), &item.repeat(count as usize)].concat();
    let keys = (0..count).flat_map(|n| [&[0xce][..], &n.to_be_bytes(), &[0xc0]].concat()).collect::<Vec<u8>>();
    for (kind, input) in [
        ("nils", list(&[0xc0])),
        ("empty strings", list(&[0xa0])),
        ("letters", list(b"\xa1a")),
        ("words", list(b"\xa9web1.test")),
        ("empty lists", list(&[0x90])),
        ("lists of one", list(&[0x91, 0xc0])),
        ("empty mappings", list(&[0x80])),
        ("mappings of one", list(&[0x81, 0xc0, 0xc0])),
        ("empty bytes", list(&[0xc4, 0])),
        ("a mapping", [&[0xdf][..], &count.to_be_bytes(), &keys].concat()),
    ] {
        let estimated = Reader::new(&input).skip(1).unwrap();
        let before = brine_allocator::held();
        let value = unpack(&input).unwrap();
        let allocated = (brine_allocator::held() - before).cast_unsigned();
        let strings = input.len() as u64;
        assert!(
            allocated <= estimated + strings + 512,
            "{kind}: {allocated} bytes are allocated, {estimated} estimated"
        );
        drop(value);
    }
}

#[test]
fn memory_beyond_the_budget_is_refused_before_it_is_allocated() {
    let nils = |count: u32| [&[0xdd][..], &count.to_be_bytes(), &vec![0xc0; count as usize]].concat();
    let pairs = |count: u32| {
        let entries = (0..count).flat_map(|n| [&[0xce][..], &n.to_be_bytes(), &[0xc0]].concat());
        [&[0xdf][..], &count.to_be_bytes(), &entries.collect::<Vec<_>>()].concat()
    };
    let value = size_of::<Value>();
    for (packed, needed) in [
        (nils(1000), 1001 * value + 16),
        (pairs(1000), 2001 * value + 24 * 1000 + 64),
        (pack(&list!["one", "two"]), 3 * value + 3 * 16),
        (pack(&vec![7u8; 100_000].into()), value + 16),
    ] {
        assert!(unpack_within(&packed, Budget(needed)).is_ok(), "{needed}");
        let refused = UnpackError::TooLarge { needed: needed as u64, limit: needed - 1 };
        assert_eq!(unpack_within(&packed, Budget(needed - 1)), Err(refused));
    }
    // 62 MB of input: without a bound, each level would reserve memory for the rest of it.
    let mut nested = b"\xdf\xff\xff\xff\xff".repeat(120);
    nested.resize(62 << 20, 0xc0);
    assert!(matches!(unpack_within(&nested, Budget::AUTHENTICATED), Err(UnpackError::Truncated(_))));
    let flat = nils(62 << 20);
    assert!(matches!(unpack_within(&flat, Budget::AUTHENTICATED), Err(UnpackError::TooLarge { .. })));
}

#[test]
fn forged_lengths_allocate_nothing() {
    for bytes in [&b"\xdd\xff\xff\xff\xff"[..], b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xffab"] {
        assert!(matches!(unpack(bytes), Err(UnpackError::Truncated(_))), "{bytes:?}");
    }
    assert_eq!(unpack(&[0x91; 1000]), Err(UnpackError::TooDeep(MAX_DEPTH)));
    assert_eq!(unpack(b"\x01\x02"), Err(UnpackError::Trailing(1)));
    assert_eq!(unpack(b"\xc1"), Err(UnpackError::Reserved(0)));
}

#[test]
fn own_data_nests_deeper_than_what_peers_send() {
    for (budget, limit) in [(Budget::TRUSTED, MAX_DEPTH), (Budget::AUTHENTICATED, 128), (Budget::UNAUTHENTICATED, 128)]
    {
        let of = |levels| pack(&crate::levels::nested(levels));
        assert!(unpack_within(&of(limit), budget).is_ok(), "{budget:?}");
        assert_eq!(unpack_within(&of(limit + 1), budget), Err(UnpackError::TooDeep(limit)));
    }
}

a:
  test.nop:
    - bools: [yes, No, on, OFF, True, FALSE, y, n, Y, tRue]
    - nulls: [null, Null, NULL, ~, None]
    - octal: [0644, 0755, '0644', 0, 00, 007, 08, 012345678, -012, 0o755, +0644]
    - radix: [0x1F, 0b101, 1_000, 0_1, 1__0, -0x10, 0xg]
    - clock: [12:30, 1:30:15, 22:22, '22:22', 00:11:22:33:44:55, 190:20:30.15, 12:60, -1:30]
    - floats: [1.50, .5, 5., 10.10, 1.0e+3, 1e3, 1.0e3, 1e+3, 1.2.3, "1,000", -.5, +1.5, 1_0.5]
    - dates: [2024-01-02, 2024-01-02T10:11:12Z, 2024-01-02 10:11:12]
    - tags: [!!str 123, !!int "42", !!float 3, !!bool "yes", !!null '', !!map {a: 1}, !!timestamp 2024-01-02]
    - plain: [foo#bar, foo:bar, "a\tb", 'it''s', -a, ?a, a b  c, <<, "=x"]

a:
  test.nop:
    - literal: |
        one
          two

        three
    - strip: |-
        one
        two
    - keep: |+
        one

    - folded: >
        one
        two

        three
          four
    - foldstrip: >-
        one
        two
    - indent: |2
          one
    - plain: one
        two

        three
    - double: "one
        two\
        three\n"
    - empty:
    - flow: {a: 1, b: [x, y], c: {d: }, e}

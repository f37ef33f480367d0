x:
  test.nop:
    - a: "tab\tnl\nuni\u00e9\x41\U0001F600 \"q\" \\ end"
    - b: 'single ''quoted'' \n'
    - c: plain with#no comment
    - d: plain # comment
    - e: http://host:80/path?x=1&y=2
    - f: "multi
        line  with

        blank"
    - g: {a: b, "c": 'd', e: [f, {g: h}], }
    - h: [a, "b, c", 'd]', {e: f}]
    - j: "- text"
    - k: ~
    - l: '~'
    - m: |-
        a: b
        # no comment
    - n: >

        folded
        text


        more
    - o: !!str yes
    - p: 1:2:3x
    - q: 2024-1-1
    - "r s": t
    - u:    spaced   
    - v: 'true'
    - w: [ ]
    - y: { }

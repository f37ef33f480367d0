ROOT/box/bin:
  file.managed:
    - contents: now text
ROOT/box/latin:
  file.managed:
    - contents: "ünï"
ROOT/box/text:
  file.managed:
    - contents: !!binary AAEC
ROOT/box/crlf:
  file.managed:
    - contents: "a\r\nb\r\n"

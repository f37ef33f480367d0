base:
  '*':
    - good
    - bad
    - missing
    - notdict
    - dup

call:
  cmd.call:
    - func: no.function
    - args: [1]
wait-call:
  cmd.wait_call:
    - func: no.function

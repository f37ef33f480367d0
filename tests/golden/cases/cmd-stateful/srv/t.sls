changed:
  cmd.run:
    - name: echo; echo "changed=yes comment='it did' key=value"
    - stateful: True
unchanged:
  cmd.run:
    - name: echo noise; echo "changed=no comment='nothing to do'"
    - stateful: True
json:
  cmd.run:
    - name: "echo '{\"changed\": true, \"comment\": \"as json\", \"k\": [1]}'"
    - stateful: True
bad:
  cmd.run:
    - name: echo nonsense
    - stateful: True
failed:
  cmd.run:
    - name: echo "changed=yes comment=x"; false
    - stateful: True
testcmd:
  cmd.run:
    - name: echo "changed=yes comment=real"
    - stateful:
      - test_name: echo "changed=yes comment=tested"

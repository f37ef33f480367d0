{{ sls }}:
  test.nop:
    - name: {{ tplfile }} {{ slspath }}

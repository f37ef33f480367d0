a:
  test:
    - name: x

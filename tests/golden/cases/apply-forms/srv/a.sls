a:
  test.succeed_with_changes:
    - comment: {{ pillar.get('k', 'no pillar') }}

größe:
  file.managed:
    - name: ROOT/box/übung
    - contents: |
        grüße 日本 🎉
        {{ 'ß' | upper }} {{ 'Ä' | lower }} {{ '日本' | length }} {{ 'éa' | reverse }}
echo:
  cmd.run:
    - name: echo 'ünï 日本'
json:
  test.nop:
    - name: {{ {'ü': '日'} | json }} {{ {'ü': '日'} | yaml }} {{ 'ü' | urlencode }} {{ ['ü'] }}

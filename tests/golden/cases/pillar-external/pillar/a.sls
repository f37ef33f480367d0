tree: {file: 1, both: file}
l: [1]
who: file
saw: {{ pillar.get('json', 'nothing') }} {{ salt['pillar.get']('tree:yaml', 'nothing') }} {{ pillar.get('over', {}).get('word', 'nothing') }}

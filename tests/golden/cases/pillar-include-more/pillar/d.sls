d: {{ word | default('none') }}

{#- A mount point comes from the machine: only known ones get into the command. #}
{%- set places = {'/': '/var/tmp', '/var': '/var/tmp', '/srv': '/srv/cache'} %}
{%- if data['mount'] in places %}
clean:
  local.cmd.run:
    - tgt: {{ data['id'] | yaml_encode }}
    - args:
      - cmd: find {{ places[data['mount']] }} -xdev -type f -mtime +7 -delete
{%- endif %}
tell:
  runner.event.send:
    - tag: alert/disk
    - data: {minion: {{ data['id'] | yaml_encode }}, mount: {{ data['mount'] | yaml_encode }}, used: {{ data['diskusage'] }}}

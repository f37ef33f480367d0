functions:
  test.nop:
    - net: {{ salt['network.calc_net']('10.1.2.3', '255.255.0.0') }}
    - private: {{ [salt['network.is_private']('10.0.0.3'), salt['network.ip_in_subnet']('10.0.0.3', '10.1.0.0/16')] }}
    - cidr: {{ salt['network.convert_cidr']('10.0.0.0/8') | json }}
    - reverse: {{ salt['network.reverse_ip']('10.0.0.1') }}
    - seed: {{ [salt['random.seed'](60), salt['random.seed'](60, hash='web1'), salt['random.rand_int'](1, 500, seed='x')] }}
    - digest: {{ salt['hashutil.sha256_digest']('a') }}
    - states: {{ salt['cp.list_states']() | json }}
    - text: {{ salt['cp.get_file_str']('salt://shop/defaults.yaml') | json }}
    - mine: {{ salt['mine.get']('*', 'test.ping') | json }}
    - merged: {{ salt['config.get']('file_client', merge='recurse') }}
    - user: {{ salt['config.get']('user') }}

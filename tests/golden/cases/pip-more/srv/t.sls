extras:
  pip.installed:
    - name: water[hot]>=1.0
    - bin_env: ROOT/bin/pip
names:
  pip.installed:
    - names: [earth, fire==1.0]
    - bin_env: ROOT/bin/pip
pkgs_versions:
  pip.installed:
    - pkgs: ['air==1.0', 'water', 'earth>=1.5']
    - bin_env: ROOT/bin/pip
not_this:
  pip.installed:
    - name: air!=1.0
    - bin_env: ROOT/bin/pip
compatible:
  pip.installed:
    - name: water~=2.0
    - bin_env: ROOT/bin/pip
requirements_list:
  pip.installed:
    - requirements: [ROOT/srv/r.txt]
    - bin_env: ROOT/bin/pip
requirements_salt:
  pip.installed:
    - requirements: salt://r.txt
    - bin_env: ROOT/bin/pip
requirements_missing:
  pip.installed:
    - requirements: salt://nope.txt
    - bin_env: ROOT/bin/pip
pkgs_one_bad:
  pip.installed:
    - pkgs: [wood, badger]
    - bin_env: ROOT/bin/pip
file:
  pip.installed:
    - name: ROOT/box/some-1.0.tar.gz
    - bin_env: ROOT/bin/pip
options:
  pip.installed:
    - name: stone
    - index_url: https://pypi.example.org/simple
    - extra_index_url: https://more.example.org/simple
    - no_deps: True
    - proxy: http://proxy:3128
    - timeout: 5
    - cwd: ROOT/box
    - bin_env: ROOT/bin/pip
no_pip:
  pip.installed:
    - name: water
    - bin_env: ROOT/bin/nopip
vcs_unknown:
  pip.installed:
    - name: git+https://example.org/repo.git@v1#egg=repo
    - bin_env: ROOT/bin/pip
vcs_there:
  pip.installed:
    - name: git+https://example.org/earth.git#egg=earth
    - bin_env: ROOT/bin/pip
vcs_no_egg:
  pip.installed:
    - name: git+https://example.org/repo.git
    - bin_env: ROOT/bin/pip
url:
  pip.installed:
    - name: https://example.org/some-1.0.tar.gz
    - bin_env: ROOT/bin/pip
at_url:
  pip.installed:
    - name: earth @ https://example.org/earth-1.0.tar.gz
    - bin_env: ROOT/bin/pip
vcs_editable:
  pip.installed:
    - name: earth
    - editable: git+https://example.org/earth.git#egg=earth
    - bin_env: ROOT/bin/pip
marker:
  pip.installed:
    - name: 'wind>=1.0; python_version > "3"'
    - bin_env: ROOT/bin/pip
local_wheel:
  pip.installed:
    - name: ROOT/box/earth-1.0-py3-none-any.whl
    - bin_env: ROOT/bin/pip

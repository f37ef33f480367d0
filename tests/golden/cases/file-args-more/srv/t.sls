ROOT/box/dir/file:
  file.managed:
    - makedirs: True
encoding-errors:
  file.managed:
    - name: ROOT/box/ascii
    - contents: "caf\u00e9 \u20ac"
    - encoding: ascii
    - encoding_errors: ignore
keep-mode:
  file.managed:
    - name: ROOT/box/keep-mode
    - source: salt://run.sh
    - mode: keep
children:
  file.directory:
    - name: ROOT/box/dir
    - mode: 700
    - children_only: True
    - recurse: [mode]
    - file_mode: 600
backup-name:
  file.directory:
    - name: ROOT/box/in-the-way
    - backupname: ROOT/box/in-the-way.bak
    - force: True
plain-file:
  file.managed:
    - name: ROOT/box/in-the-way
    - contents: x
    - replace: False
serialize-check:
  file.serialize:
    - name: ROOT/box/ser3.json
    - dataset: {c: 2}
    - check_cmd: grep -q nothing
cached:
  file.cached:
    - name: salt://plain.txt
cached-env:
  file.cached:
    - name: salt://plain.txt
    - saltenv: base
    - source_hash: {{ salt['hashutil.digest']('plain\n', 'sha256') }}
tidied:
  file.tidied:
    - name: ROOT/box/dir
    - matches: ['b']
    - exclude: ['c']
    - rmdirs: True
    - full_path_match: True
hardlink:
  file.hardlink:
    - name: ROOT/box/made/hard
    - target: ROOT/box/dir/file
    - makedirs: True
    - dir_mode: 750
    - user: root
    - group: root
copy-dirmode:
  file.copy:
    - name: ROOT/box/made2/copy
    - source: ROOT/box/dir/file
    - makedirs: True
    - dir_mode: 750
    - mode: 600
    - group: root
symlink-mode:
  file.symlink:
    - name: ROOT/box/made3/link
    - target: ROOT/box/dir/file
    - makedirs: True
    - mode: 700
    - atomic: True

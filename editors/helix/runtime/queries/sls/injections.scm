; The text around the tags of Jinja is one document of YAML.
((source_file) @injection.content
  (#set! injection.language "yaml")
  (#set! injection.combined))

nginx:
  opts: {refresh: True, n: 5}
  server:
    config:
      worker_processes: 4
      events:
        worker_connections: 768
      http:
        sendfile: 'on'
        include: [mime.types, 'conf.d/*.conf']
        gzip_types: text/plain
  servers:
    managed:
      site.conf: {config: 'server { listen 80; }'}
      old.conf: {deleted: True}

more: true

{{ range(1000000)|list }}

{{ none < 1 }}

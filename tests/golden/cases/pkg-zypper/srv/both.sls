both:
  pkg.installed:
    - pkgs:
      - brine-one
      - brine-two: '2:1.0-3'

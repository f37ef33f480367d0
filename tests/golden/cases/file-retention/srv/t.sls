ROOT/box/keep:
  file.retention_schedule:
    - retain:
        most_recent: 1
        first_of_hour: 1
        first_of_day: 2
        first_of_week: 1
        first_of_month: 3
        first_of_year: all
ROOT/box/few:
  file.retention_schedule:
    - retain:
        most_recent: 4
ROOT/box/names:
  file.retention_schedule:
    - strptime_format: "log-%Y-%m-%d.gz"
    - retain:
        first_of_month: 2
        most_recent: 1
ROOT/box/none:
  file.retention_schedule:
    - retain:
        most_recent: 1
ROOT/box/file:
  file.retention_schedule:
    - retain:
        most_recent: 1
ROOT/box/nowhere:
  file.retention_schedule:
    - retain:
        most_recent: 1
relative:
  file.retention_schedule:
    - retain:
        most_recent: 1

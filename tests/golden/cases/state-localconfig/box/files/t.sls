other {{ pillar.get('p') }} {{ opts.id }} {{ grains.id }}: test.succeed_with_changes

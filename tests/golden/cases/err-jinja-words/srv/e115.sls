{{ pillar.word['nokey'] }}

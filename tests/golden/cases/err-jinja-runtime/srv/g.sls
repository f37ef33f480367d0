{{ 'abc'.nosuch() }}

{{ raise('own words') }}

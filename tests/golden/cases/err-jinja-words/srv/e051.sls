{{ 'a' in none }}

# only comments
{# and more #}

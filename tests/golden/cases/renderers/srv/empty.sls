#!jinja|yaml
{# nothing #}

; Tags of Jinja. The text around them is YAML: injections.scm.
(comment) @comment
(string) @string
(keyword) @keyword
(operator) @operator
(identifier) @variable
[(statement) (expression)] @special

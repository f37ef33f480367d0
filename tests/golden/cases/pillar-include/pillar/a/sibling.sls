sibling: {{ sls }} {{ tpldir }}

base: {'golden': [base_of_qa]}
dev: {'*': [dev_of_qa]}
qa: {'*': [qa_of_qa]}

"""A runner of the operator's own that publishes progress events."""


def walk():
    __jid_event__.fire_event({"message": "ü", "n": [1, None]}, "progress")
    __jid_event__.fire_event({"data": {"a": 1}, "outputter": "json"}, "progress")
    __jid_event__.fire_event({"message": "other"}, "own")
    __jid_event__.fire_event({"return": {"outputter": "txt"}}, "progress")
    return "walked"


def fail():
    __jid_event__.fire_event({"message": "half"}, "progress")
    raise ValueError("no way on")

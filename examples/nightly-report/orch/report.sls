#!py
def run():
    returns = salt["saltutil.runner"]("salt.execute", arg=["*", "state.apply"], kwarg={"kwarg": {"test": True}})
    differs = sorted(
        minion
        for minion, states in returns.items()
        if not isinstance(states, dict) or any(state["result"] is None for state in states.values())
    )
    return {
        "report": {
            "salt.runner": [{"name": "event.send"}, {"tag": "report/drift"}, {"data": {"minions": differs}}],
        }
    }

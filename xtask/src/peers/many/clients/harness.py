"""What the scripts of Python clients share: the two hubs to use, and the report about them as JSON."""

import asyncio
import json
import os
import sys

MESSAGE = {"message": "hello"}
TOOL = os.environ["TOOL"]


def variables():
    """The environment of the hub: some clients start a program with less than their own."""
    return dict(os.environ)


def run(use):
    """Calls `use(command, args)`, which returns the names of the tools and the text of the call's result, for each hub."""
    reports = []
    for program, *args in json.loads(sys.argv[2]):
        try:
            outcome = use(program, args)
            names, called = asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome
            reports.append({"tools": list(names), "called": called})
        except BaseException as error:  # also groups of exceptions
            reports.append({"error": innermost(error)})
    print("\n" + json.dumps(reports), flush=True)
    # Some frameworks leave threads behind that do not end.
    os._exit(0)


def innermost(error):
    """The cause in a group of exceptions."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:500]


def text_of(value):
    """The text in a result, however the framework wraps it."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return value
        return text_of(inner) if isinstance(inner, (list, dict)) else value
    if isinstance(value, (list, tuple)):
        return text_of(value[0]) if value else ""
    if isinstance(value, dict):
        for key in ("text", "content", "result", "value"):
            if value.get(key):
                return text_of(value[key])
        return ""
    for name in ("text", "content", "result", "value"):
        if getattr(value, name, None):
            return text_of(getattr(value, name))
    return str(value)

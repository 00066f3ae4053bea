"""What the Python clients share: their settings, the prompts, and the report of what they observed."""

import json
import os
import sys
import traceback

BASE_URL = os.environ["BASE_URL"]
API_KEY = os.environ["API_KEY"]
MODEL = os.environ.get("MODEL", "toolhub/default")
SERVER = "sheets"
# In seconds. A model on a processor takes its time.
TIMEOUT = float(os.environ.get("CLIENT_TIMEOUT", "60"))

# The scripted model recognises these requests; see `scripted_model.rs`.
HELLO = os.environ.get("HELLO", "Say hello.")
CALCULATION = os.environ.get("CALCULATION", "Work out 17 * 23.")
READ_ROW = os.environ.get("READ_ROW", "Read row 3.")
WEATHER = "What is the weather in Kyoto?"
READ_AND_WEATHER = "Read row 3, and tell me the weather in Kyoto."
TRIP = "A trip to Osaka, as JSON."
MY_NAME = "My name is Ada."
WHOSE_NAME = "What is my name?"
WRITE_ROW = "Write row 7."
ENDLESS = "Think for ever."

WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TRIP_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def weather(city: str) -> str:
    return f"sunny in {city}"


def run(scenarios):
    """Runs the scenarios named in the arguments, and prints what each observed as one JSON object.

    An exception is what that scenario observed: the others are still run.
    """
    report = {}
    for name in sys.argv[2].split(","):
        try:
            report[name] = scenarios[name]()
        except Exception:
            report[name] = {"exception": traceback.format_exc()}
    print(json.dumps(report))


def failure(error, status=None, body=None):
    """The class of an error, its status, and the member `error` of its body."""
    return {"class": type(error).__name__, "status": status, "body": body}

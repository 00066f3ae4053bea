"""Replaces the calls in a store by many: `history.py DATABASE CALLS TOOLS`. No hub may use the database meanwhile.

The first stored call is the model of all others. They are spread evenly over the last 60 days, and over the tools so that some
are used often. One of a hundred failed, one of ten was made with a key, and results are stored for 30 days.
"""
import random
import sqlite3
import sys
import time

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
DAY = 86_400_000_000
DAYS = 60
RESULT_DAYS = 30


def record_id(micros, number):
    def digits(value, count):
        return "".join(LETTERS[value >> 5 * place & 31] for place in reversed(range(count)))

    return digits(micros // 1000, 9) + digits(number, 3) + "bench0"


def call(number, began):
    tool = f"echo_{int(tools * random.random() ** 3)}"
    failed = random.random() < 0.01
    status = "failed" if failed else "succeeded"
    return model | {
        "id": number + 1,
        "record": record_id(began, number),
        "call": f"call_{number}",
        "tool": tool,
        "arguments": f'{{"text":"order {number} of customer {number * 7919 % 100_003}","count":3}}',
        "arguments_hash": number,
        "request": f"repeat order {number}" if number % 20 == 0 else None,
        "began": began,
        "status": status,
        "took": 200 + random.randrange(20_000),
        "error_kind": "tool" if failed else None,
        "error": '["the order is closed","订单已关闭"]' if failed else None,
        "attempts": f'[["up","{tool}","{status}",200,null]]',
        "principal": "key:ci" if number % 10 == 0 else "local",
    }


random.seed(26)
tools = int(sys.argv[3])
count = int(sys.argv[2])
database = sqlite3.connect(sys.argv[1])
database.row_factory = sqlite3.Row
model = dict(database.execute("SELECT * FROM calls ORDER BY id LIMIT 1").fetchone())
output = database.execute("SELECT output FROM results WHERE id = ?", [model["id"]]).fetchone()["output"]
now = time.time_ns() // 1000
began = [now - DAYS * DAY + number * DAYS * DAY // count for number in range(count)]
for table in ("calls", "results", "statistics", "latencies", "last_uses", "day_totals", "latency_totals"):
    database.execute(f"DELETE FROM {table}")
columns = list(model)
database.executemany(
    f"INSERT INTO calls ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
    ([made[column] for column in columns] for made in map(call, range(count), began)),
)
database.execute(
    "INSERT INTO results SELECT id, began, ?1, ?2 FROM calls WHERE began > ?3 AND status = 'succeeded'",
    [len(output), output, now - RESULT_DAYS * DAY],
)
database.execute(
    "UPDATE housekeeping SET value = (SELECT sum(bytes) FROM results) WHERE name = 'result_bytes'"
)
database.execute(
    f"""INSERT INTO statistics SELECT 'up', tool, began / {DAY}, sum(status = 'succeeded'), sum(status = 'failed')
        FROM calls GROUP BY tool, began / {DAY}"""
)
database.execute(
    "INSERT INTO latencies SELECT 'up', tool, 20 + took / 2500, count(*) FROM calls WHERE status = 'succeeded' GROUP BY tool, took / 2500"
)
database.execute(
    """INSERT INTO last_uses SELECT 'up', tool, max(began) FILTER (WHERE status = 'succeeded'),
        max(began) FILTER (WHERE status = 'failed'), count(*) FROM calls GROUP BY tool"""
)
database.execute("INSERT INTO day_totals SELECT day, sum(successes), sum(failures) FROM statistics GROUP BY day")
database.execute("INSERT INTO latency_totals SELECT step, sum(count) FROM latencies GROUP BY step")
database.commit()

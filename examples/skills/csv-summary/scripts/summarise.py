#!/usr/bin/env python3
"""Tells what is in a CSV file. Arguments come as JSON on stdin, the answer goes to stdout as JSON."""

import csv
import datetime
import json
import sys

MOST_DISTINCT = 1000


class Column:
    def __init__(self, name):
        self.name = name
        self.missing = 0
        self.count = 0
        self.total = 0.0
        self.distinct = {}
        self.kinds = {"integer", "number", "date", "text"}
        self.low = self.high = None

    def add(self, value):
        value = value.strip()
        if not value:
            self.missing += 1
            return
        self.count += 1
        if len(self.distinct) < MOST_DISTINCT:
            self.distinct.setdefault(value)
        for kind in ("integer", "number", "date"):
            if kind in self.kinds and read(kind, value) is None:
                self.kinds.discard(kind)
        number = read("number", value)
        if number is not None:
            self.total += number
        key = self.key(value)
        if self.low is None or key < self.low:
            self.low = key
        if self.high is None or key > self.high:
            self.high = key

    def key(self, value):
        number = read("number", value)
        return (0, number, "") if number is not None else (1, len(value), value)

    def kind(self):
        return next((kind for kind in ("integer", "number", "date") if kind in self.kinds and self.count), "text")

    def told(self):
        kind = self.kind()
        told = {"name": self.name, "type": kind, "missing": self.missing, "distinct": len(self.distinct),
                "examples": list(self.distinct)[:3]}
        if not self.count:
            return told
        if kind in ("integer", "number"):
            whole = int if kind == "integer" else float
            told.update(minimum=whole(self.low[1]), maximum=whole(self.high[1]), mean=self.total / self.count)
        elif kind == "date":
            days = sorted(self.distinct)
            told.update(minimum=days[0], maximum=days[-1])
        else:
            lengths = [len(value) for value in self.distinct]
            told.update(minimum=min(lengths), maximum=max(lengths))
        return told


def read(kind, value):
    try:
        if kind == "integer":
            return int(value)
        if kind == "number":
            return float(value)
        return datetime.date.fromisoformat(value)
    except ValueError:
        return None


def main():
    arguments = json.load(sys.stdin)
    most = arguments.get("rows", 100000)
    with open(arguments["path"], newline="", encoding="utf-8-sig") as file:
        delimiter = arguments.get("delimiter")
        if not delimiter:
            sample = file.read(65536)
            file.seek(0)
            try:
                delimiter = csv.Sniffer().sniff(sample, delimiters=",;\t|").delimiter
            except csv.Error:
                delimiter = ","
        rows = csv.reader(file, delimiter=delimiter)
        names = next(rows, [])
        columns = [Column(name.strip() or f"column {at + 1}") for at, name in enumerate(names)]
        count, complete = 0, True
        for row in rows:
            if count >= most:
                complete = False
                break
            count += 1
            for at, column in enumerate(columns):
                column.add(row[at] if at < len(row) else "")
    json.dump({"rows": count, "complete": complete, "delimiter": delimiter,
               "columns": [column.told() for column in columns]}, sys.stdout, ensure_ascii=False)


main()

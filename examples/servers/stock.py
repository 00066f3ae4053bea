#!/usr/bin/env python3
"""An MCP server over stdio without dependencies: the stock of a small warehouse, kept in memory."""

import json
import sys

STOCK = {"screws": 1200, "bolts": 340, "washers": 0}

ITEM = {"type": "string", "enum": sorted(STOCK), "description": "The item"}
TOOLS = [
    {
        "name": "get_stock",
        "description": "Tells how many pieces of an item are in the warehouse.",
        "inputSchema": {"type": "object", "properties": {"item": ITEM}, "required": ["item"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "list_items",
        "description": "Lists all items of the warehouse with their number of pieces.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "remove_stock",
        "description": "Takes pieces of an item out of the warehouse.",
        "inputSchema": {
            "type": "object",
            "properties": {"item": ITEM, "count": {"type": "integer", "minimum": 1, "description": "How many"}},
            "required": ["item", "count"],
        },
        "annotations": {"destructiveHint": True},
    },
]


def call(name, arguments):
    if name == "list_items":
        return "\n".join(f"{item}: {count}" for item, count in STOCK.items())
    item = arguments["item"]
    if name == "remove_stock":
        if arguments["count"] > STOCK[item]:
            raise ValueError(f"only {STOCK[item]} {item} left")
        STOCK[item] -= arguments["count"]
    return f"{STOCK[item]} {item}"


def answer(method, params):
    if method == "initialize":
        server = {"name": "stock", "version": "1.0.0"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            text, failed = call(params["name"], params.get("arguments", {})), False
        except ValueError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)

"""Small MCP servers with fixed data, and the answers to the tasks of `tasks.json`.

`servers.py serve NAME` speaks MCP over stdio and appends each call to the file in TASK_LOG. `servers.py answers` prints
the answers as a JSON object; they are computed from the data, without any tool.
"""

import json
import os
import sys

CITIES = ["北京", "上海", "广州", "成都", "武汉", "西安", "南京", "杭州"]
FILLER = "Recorded by the nightly import; see the operations handbook for the meaning of each field. "

CUSTOMERS = [
    {"id": f"c{n}", "name": f"Customer {n}", "email": f"customer{n}@example.com", "city": CITIES[n % 8],
     "level": ["basic", "silver", "gold"][n % 3], "notes": FILLER * 3}
    for n in range(20)
]
PRODUCTS = [
    {"sku": f"p{n}", "title": f"Product {n}", "category": ["tools", "toys", "books", "food"][n % 4], "price": 5 + (n * 7) % 90,
     "description": FILLER * 2}
    for n in range(24)
]
STOCK = {f"p{n}": {"north": (n * 5) % 17, "south": (n * 3) % 11, "east": (n * 11) % 7} for n in range(24)}
ORDERS = [
    {"id": f"o{n}", "customer": f"c{(n * 3) % 20}", "status": ["open", "paid", "shipped"][n % 3], "day": 1 + n % 28,
     "lines": [{"sku": f"p{(n + k) % 24}", "count": 1 + (n + k) % 3} for k in range(1 + n % 3)]}
    for n in range(60)
]
EMPLOYEES = [
    {"id": f"e{n}", "name": f"Employee {n}", "team": ["core", "web", "data", "ops"][n % 4], "salary": 4000 + (n * 370) % 3000,
     "profile": FILLER * 2}
    for n in range(24)
]
LEAVE = {f"e{n}": [{"from": 1 + (n * k) % 300, "days": 1 + (n + k) % 5, "reason": FILLER} for k in range(1, 2 + n % 4)] for n in range(24)}
LOGS = {
    f"app-{day:02}.log": "\n".join(
        f"2026-10-{day:02}T{h:02}:00:00 {'ERROR' if (h * day) % 7 == 3 else 'INFO'} worker-{h % 4} handled {h * day} requests; {FILLER}"
        for h in range(24)
    )
    for day in range(1, 13)
}
WEATHER = {city: [{"day": day, "high": 15 + (i * 3 + day * 5) % 17, "low": 5 + (i + day * 2) % 9, "rain": (i * day) % 4 == 1,
                   "text": "数据来自地面观测站，仅供参考。" * 4} for day in range(1, 8)] for i, city in enumerate(CITIES)}
REPOS = ["gateway", "console", "engine", "docs", "sandbox", "search"]
ISSUES = {
    repo: [{"number": n, "title": f"Issue {n} of {repo}", "state": "open" if (n + i) % 3 else "closed", "votes": (n * 13 + i * 7) % 40,
            "labels": ["bug"] if (n + i) % 2 else ["idea"]} for n in range(1, 11)]
    for i, repo in enumerate(REPOS)
}


def text(name):
    return {name: {"type": "string"}}


def number(name):
    return {name: {"type": "integer"}}


def tool(name, description, properties, required, run, read_only=True):
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": read_only}, "run": run}


def page(items, arguments, size=20):
    at = arguments.get("page", 1) - 1
    return {"items": items[at * size:(at + 1) * size], "pages": -(-len(items) // size)}


def by(items, key, value):
    return [item for item in items if value is None or item[key] == value]


def order_detail(arguments):
    order = next(o for o in ORDERS if o["id"] == arguments["id"])
    return {**order, "history": [{"event": "created", "by": "import", "note": FILLER} for _ in range(4)]}


SERVERS = {
    "shop": [
        tool("list_orders", "Lists orders of the shop, newest last, 20 per page, optionally by status (open, paid, shipped)",
             {**text("status"), **number("page")}, [], lambda a: page([{"id": o["id"], "customer": o["customer"], "status": o["status"], "day": o["day"]} for o in by(ORDERS, "status", a.get("status"))], a)),
        tool("get_order", "Gets one order with its lines and history", text("id"), ["id"], order_detail),
        tool("get_customer", "Gets the record of a customer: name, email, city, level", text("id"), ["id"], lambda a: next(c for c in CUSTOMERS if c["id"] == a["id"])),
        tool("list_products", "Lists the products of a category (tools, toys, books, food), or all", text("category"), [], lambda a: {"items": by(PRODUCTS, "category", a.get("category"))}),
        tool("get_stock", "Gets the stock of a product in each warehouse", text("sku"), ["sku"], lambda a: {"sku": a["sku"], "warehouses": STOCK[a["sku"]]}),
        tool("set_price", "Sets the price of a product", {**text("sku"), **number("price")}, ["sku", "price"], lambda a: {"sku": a["sku"], "price": a["price"], "saved": True}, False),
        tool("create_refund", "Creates a refund for an order", {**text("order"), **number("amount")}, ["order", "amount"], lambda a: {"refund": "r-" + a["order"], "amount": a["amount"]}, False),
    ],
    "hr": [
        tool("list_employees", "Lists the employees of a team (core, web, data, ops), or all", text("team"), [], lambda a: {"items": [{"id": e["id"], "name": e["name"], "team": e["team"]} for e in by(EMPLOYEES, "team", a.get("team"))]}),
        tool("get_employee", "Gets the record of an employee, with salary and profile", text("id"), ["id"], lambda a: next(e for e in EMPLOYEES if e["id"] == a["id"])),
        tool("list_leave", "Lists the leave of an employee this year", text("id"), ["id"], lambda a: {"items": LEAVE[a["id"]]}),
    ],
    "logs": [
        tool("list_logs", "Lists the names of the log files", {}, [], lambda a: {"files": sorted(LOGS)}),
        tool("read_log", "Reads a log file as text", text("file"), ["file"], lambda a: LOGS[a["file"]]),
    ],
    "weather": [
        tool("list_cities", "列出可以查询天气的城市", {}, [], lambda a: {"cities": CITIES}),
        tool("get_weather", "查询城市一周的天气：最高温、最低温、是否下雨", text("city"), ["city"], lambda a: {"city": a["city"], "days": WEATHER[a["city"]]}),
    ],
    "issues": [
        tool("list_repositories", "Lists the repositories of the organisation", {}, [], lambda a: {"items": REPOS}),
        tool("list_issues", "Lists the issues of a repository with state, votes and labels", text("repository"), ["repository"], lambda a: {"items": ISSUES[a["repository"]]}),
        tool("close_issue", "Closes an issue of a repository", {**text("repository"), **number("number")}, ["repository", "number"], lambda a: {"closed": a["number"]}, False),
    ],
    # Tools that no task needs, as every real catalog has them.
    "office": [
        tool(f"{verb}_{thing}", f"{verb.capitalize()}s a {thing} of the office suite, with the usual options for format, sharing and versions",
             {**text("id"), **text("folder"), **text("format"), "options": {"type": "object", "properties": {**text("language"), **number("version"), "share": {"type": "boolean"}}}}, ["id"], lambda a: {"ok": True})
        for verb in ["create", "read", "update", "export", "archive", "share"]
        for thing in ["document", "sheet", "slide", "form", "calendar", "contact", "task", "note", "folder", "mail", "room", "poll", "chart"]
    ],
}


def answers():
    product = {p["sku"]: p for p in PRODUCTS}
    customer = {c["id"]: c for c in CUSTOMERS}
    total = {o["id"]: sum(product[line["sku"]]["price"] * line["count"] for line in o["lines"]) for o in ORDERS}
    open_orders = by(ORDERS, "status", "open")
    errors = {file: log.count(" ERROR ") for file, log in LOGS.items()}
    all_issues = [(repo, issue) for repo in REPOS for issue in ISSUES[repo]]
    opened = lambda repo: [i for i in ISSUES[repo] if i["state"] == "open"]
    leave = {e["id"]: sum(item["days"] for item in LEAVE[e["id"]]) for e in EMPLOYEES}
    stock = {sku: sum(w.values()) for sku, w in STOCK.items()}
    toys = by(PRODUCTS, "category", "toys")
    high = lambda city: max(day["high"] for day in WEATHER[city])
    return {
        "customer-email": customer["c7"]["email"],
        "order-lines": len(ORDERS[5]["lines"]),
        "stock-one": stock["p3"],
        "city-weather-zh": high("成都"),
        "log-errors-one": errors["app-04.log"],
        "employee-salary": EMPLOYEES[9]["salary"],
        "repository-count": len(REPOS),
        "order-customer-city": customer[ORDERS[8]["customer"]]["city"],
        "two-cities-zh": "北京" if high("北京") > high("西安") else "西安",
        "team-size": len(by(EMPLOYEES, "team", "data")),
        "open-issues-docs": len(opened("docs")),
        "toy-prices": sum(p["price"] for p in toys),
        "price-change": {"sku": "p9", "price": PRODUCTS[9]["price"] + 5},
        "refund-one": total["o4"],
        "close-least": min(opened("search"), key=lambda i: i["votes"])["number"],
        "open-total": sum(total[o["id"]] for o in open_orders),
        "gold-open": sorted({o["customer"] for o in open_orders if customer[o["customer"]]["level"] == "gold"}),
        "toys-low-stock": sorted(p["sku"] for p in toys if stock[p["sku"]] < 15),
        "errors-by-log": errors,
        "worst-log": max(sorted(errors), key=lambda f: errors[f]),
        "leave-web": sum(leave[e["id"]] for e in by(EMPLOYEES, "team", "web")),
        "leave-most": max(sorted(leave), key=lambda e: leave[e]),
        "salary-by-team": {team: sum(e["salary"] for e in by(EMPLOYEES, "team", team)) for team in ["core", "data"]},
        "warmest-zh": max(CITIES, key=high),
        "rain-days-zh": {city: sum(day["rain"] for day in WEATHER[city]) for city in CITIES},
        "dry-cities-zh": [city for city in CITIES if not any(day["rain"] for day in WEATHER[city])],
        "open-bugs": {repo: sum(1 for i in opened(repo) if "bug" in i["labels"]) for repo in REPOS},
        "most-voted": max(((i["votes"], repo, i["number"]) for repo, i in all_issues if i["state"] == "open"), key=lambda t: t[0])[0],
        "close-unpopular": sum(1 for repo, i in all_issues if i["state"] == "open" and i["votes"] < 4),
        "raise-books": sorted(p["sku"] for p in PRODUCTS if p["category"] == "books" and p["price"] < 40),
        "shipped-cities": sorted({customer[o["customer"]]["city"] for o in by(ORDERS, "status", "shipped")}),
        "stock-north-food": sum(STOCK[p["sku"]]["north"] for p in PRODUCTS if p["category"] == "food"),
    }


def serve(name):
    tools = {tool["name"]: tool for tool in SERVERS[name]}
    log = open(os.environ["TASK_LOG"], "a", encoding="utf-8")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params", {})
        if message["method"] == "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
        elif message["method"] == "tools/list":
            result = {"tools": [{key: value for key, value in tool.items() if key != "run"} for tool in tools.values()]}
        elif message["method"] == "tools/call":
            value = tools[params["name"]]["run"](params.get("arguments", {}))
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            result = {"content": [{"type": "text", "text": shown}]}
            if not isinstance(value, str):
                result["structuredContent"] = value
            print(json.dumps({"tool": params["name"], "arguments": params.get("arguments", {}), "result": shown}), file=log, flush=True)
        else:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown method"}}), flush=True)
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if sys.argv[1] == "answers":
    print(json.dumps(answers(), ensure_ascii=False))
else:
    serve(sys.argv[2])

"""Lists and calls tools through a protected gateway with the official Python SDK, and prints the results as JSON.

The argument is JSON: `url`, `mode` (`auto`, `legacy`), `calls` (a list of name and arguments), and one of `key` (a bearer token)
and `login` (the `account` that logs in at the provider, and `approve`, the provider's route that accepts for it). With `elicit` the
client declares that it can ask its user, who answers with that action, or never (`wait`). With `concurrent` all calls are made at
once. With `after` it makes those calls, too, once a line has arrived at its standard input.
"""

import json
import sys
import urllib.parse

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

details = json.loads(sys.argv[1])
seen = []


class Storage:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def login(account, approve):
    location = {}

    async def redirect(url):
        seen.append(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query)).get("scope"))
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.get(approve, params={"account": account, "to": url})
        location["url"] = answer.json()["location"]

    async def callback():
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location["url"]).query))
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    metadata = OAuthClientMetadata(
        redirect_uris=["http://127.0.0.1:5555/callback"], client_name="team", token_endpoint_auth_method="none"
    )
    return OAuthClientProvider(details["url"], metadata, Storage(), redirect, callback)


async def elicit(context, params):
    seen.append(params.message)
    if details["elicit"] == "wait":
        await anyio.sleep_forever()
    return types.ElicitResult(action=details["elicit"], content={})


async def call(client, name, arguments):
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message}
    meta = result.meta or {}
    reference = meta.get("toolhub/reference")
    return {"text": result.content[0].text, "error": bool(result.is_error), "reference": reference}


async def call_all(client, calls):
    results = [None] * len(calls)

    async def one(index):
        results[index] = await call(client, *calls[index])

    if not details.get("concurrent"):
        for index in range(len(calls)):
            await one(index)
        return results
    async with anyio.create_task_group() as group:
        for index in range(len(calls)):
            group.start_soon(one, index)
    return results


async def main():
    headers = {"Authorization": f"Bearer {details['key']}"} if "key" in details else {}
    auth = login(**details["login"]) if "login" in details else None
    callback = elicit if "elicit" in details else None
    async with httpx2.AsyncClient(headers=headers, auth=auth, timeout=120, trust_env=False) as http:
        transport = streamable_http_client(details["url"], http_client=http)
        async with Client(transport, mode=details["mode"], elicitation_callback=callback) as client:
            report = {"tools": sorted(tool.name for tool in (await client.list_tools()).tools)}
            report["calls"] = await call_all(client, details["calls"])
            if "after" in details:
                print(json.dumps(report), flush=True)
                await anyio.to_thread.run_sync(sys.stdin.readline)
                report["calls"] = await call_all(client, details["after"])
    report["seen"] = seen
    print(json.dumps(report), flush=True)


anyio.run(main)

"""A small MCP server for the tests of upstream addresses: plain or over TLS, behind a proxy or not.

Arguments: the address to bind, and for TLS the files of the certificate and its key. Prints its port, then one JSON line
for each connection and each request."""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL = {"name": "where", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def log(**fields):
    print(json.dumps(fields), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        alpn = getattr(self.connection, "selected_alpn_protocol", lambda: None)()
        log(event="connection", alpn=alpn)

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(405, b"")

    do_DELETE = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        message = json.loads(body)
        log(event="request", method=message["method"], path=self.path, host=self.headers["host"])
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": "here"}]},
            "ping": {},
        }
        if "id" not in message:
            return self.answer(202, b"")
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in results:
            answer["result"] = results[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "method not found"}
        self.answer(200, json.dumps(answer).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        log(event="refused")


server = Server((sys.argv[1], 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    context.set_alpn_protocols(["h2", "http/1.1"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()

"""The part of CrowdSec's local API that its bouncers read: decisions since the last request.

usage: crowdsec-lapi.py PORT FOLDER

A request returns the addresses in FOLDER/new as bans and those in FOLDER/deleted as ends of bans,
and removes both files. FOLDER/requests gets a line for each request.
"""

import http.server
import json
import pathlib
import sys

FOLDER = pathlib.Path(sys.argv[2])


def decisions(name):
    """Returns a decision for each address of a file, and removes the file."""
    try:
        text = (FOLDER / name).read_text()
        (FOLDER / name).unlink()
    except FileNotFoundError:
        return []
    return [
        {
            "id": number,
            "origin": "cscli",
            "type": "ban",
            "scope": "Ip",
            "value": address,
            "duration": "4h",
            "scenario": "manual ban",
        }
        for number, address in enumerate(text.split(), 1)
    ]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with (FOLDER / "requests").open("a") as log:
            print(self.path, file=log)
        if not self.path.startswith("/v1/decisions/stream"):
            self.send_error(404)
            return
        answer = json.dumps({"new": decisions("new"), "deleted": decisions("deleted")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_HEAD = do_GET


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

"""Replays the events of a session to a file, and survives its own death.

Written from /openapi.json and specs/http.md alone, with the standard library. Usage:

    DAYBOOK_TOKEN=... python3 replay.py URL SESSION FILE

FILE gets one event per line. FILE.state has the cursor behind the last complete line and the length of FILE up to there, and
is replaced atomically: whatever was written after it is cut off at the next start, and read again from the cursor.
Prints the number of events so far at the start, and after each of them.
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


def endpoint(base, session):
    """The address of the stream, as the server's own description has it."""
    with urllib.request.urlopen(base + "/openapi.json") as response:
        paths = json.load(response)["paths"]
    path = next(
        path
        for path, methods in paths.items()
        if path.endswith("/events") and "{sessionID}" in path and "get" in methods
    )
    return base + path.replace("{sessionID}", urllib.parse.quote(session, safe=""))


def frames(response):
    """The server-sent events of a response. One that is not ended by an empty line is incomplete, and dropped."""
    fields = {}
    for raw in response:
        line = raw.decode("utf-8").rstrip("\n")
        if line == "":
            if "data" in fields:
                yield fields.get("event", "message"), fields.get("id"), fields["data"]
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value[1:] if value.startswith(" ") else value


class Copy:
    """The lines so far, and where to go on."""

    def __init__(self, path):
        self.state = path + ".state"
        self.cursor, length, self.count = None, 0, 0
        if os.path.exists(self.state):
            with open(self.state, encoding="utf-8") as file:
                kept = json.load(file)
            self.cursor, length, self.count = kept["cursor"], kept["length"], kept["count"]
        self.file = open(path, "ab")
        self.file.truncate(length)
        self.file.seek(length)

    def add(self, cursor, text):
        self.file.write(text.encode("utf-8") + b"\n")
        self.file.flush()
        self.cursor, self.count = cursor, self.count + 1
        kept = {"cursor": cursor, "length": self.file.tell(), "count": self.count}
        with open(self.state + ".new", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(self.state + ".new", self.state)
        print(self.count, flush=True)


def read(url, token, copy):
    """Reads one connection. False: do not connect again."""
    headers = {"authorization": "Bearer " + token, "accept": "text/event-stream"}
    if copy.cursor is not None:
        headers["last-event-id"] = copy.cursor
    # Three heartbeats are missing after this time.
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=45) as response:
        for kind, cursor, data in frames(response):
            if kind == "event":
                copy.add(cursor, data)
            elif kind == "end":
                return json.loads(data)["reason"] == "draining"
    return True


def main(base, session, path):
    copy, token = Copy(path), os.environ["DAYBOOK_TOKEN"]
    print(copy.count, flush=True)
    url, delay = None, 0.05
    while True:
        before = copy.count
        try:
            url = url or endpoint(base, session)
            if not read(url, token, copy):
                return 0
        except urllib.error.HTTPError as error:
            if error.code not in (429, 500, 502, 503, 504):
                print(error.read().decode("utf-8"), file=sys.stderr)
                return 1
        except (OSError, http.client.HTTPException):
            pass  # The connection was cut.
        delay = 0.05 if copy.count > before else min(delay * 2, 10)
        time.sleep(delay)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

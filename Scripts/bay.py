"""Drives the real programs for the demo and the kill rounds: a server, phones, and the radio between them.

Standard library only. Every process started here is ended here, by its id.
"""

import gzip
import json
import os
import socket
import struct
import subprocess
import threading


class Server:
    """`fieldpost serve` on a free port; its log tells what was committed."""

    def __init__(self, fieldpost, schema, store):
        self.log, self.committed, self.condition = [], [], threading.Condition()
        self.process = subprocess.Popen(
            [fieldpost, "serve", "--schema", schema, "--store", store, "--listen", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = json.loads(self.process.stdout.readline())
        assert first["event"] == "listening", first
        self.host, port = first["address"].rsplit(":", 1)
        self.port = int(port)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            entry = json.loads(line)
            with self.condition:
                self.log.append(entry)
                if entry.get("event") == "committed":
                    self.committed.append(entry["operations"])
                self.condition.notify_all()

    def wait_for_commits(self, count):
        """Waits until the log holds `count` commits; False after ten seconds."""
        with self.condition:
            return self.condition.wait_for(lambda: len(self.committed) >= count, timeout=10)

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=15)
        self.reader.join(timeout=5)
        return code


class Phone:
    """`fieldpost device` on a file, driven by lines."""

    def __init__(self, fieldpost, schema, db, server, token):
        self.arguments = [fieldpost, "device", "--schema", schema, "--db", db, "--server", server, "--token", token]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def tell(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, **command):
        self.tell(command)
        return self.hear()

    def write(self, *operations):
        reply = self.ask(do="write", ops=list(operations))
        assert reply["ok"], reply
        return reply

    def kill(self):
        """The battery dies: SIGKILL, nothing is tidied up."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(timeout=15)


class Radio:
    """The way from phones to the server: a proxy that drops real bytes and keeps what was sent."""

    def __init__(self, server):
        self.server = server
        self.has_signal = False
        self.lose_answers = 0          # how many answers of pushes to drop
        self.on_answer = None          # called with the push's ids between the server's answer and the phone
        self.sent = []                 # the operation ids of each push that reached the server
        self.lost = []                 # the operation ids whose answer was dropped
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                phone, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(phone,), daemon=True).start()

    @staticmethod
    def _reset(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    @staticmethod
    def _message(stream):
        """One HTTP message with a length: its first line, headers and raw bytes."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return None
            head += line
        lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:] if ":" in line)}
        body = stream.read(int(headers.get("content-length", 0)))
        return lines[0], headers, head + body, body

    def _serve(self, phone):
        if not self.has_signal:
            return self._reset(phone)
        upstream = socket.create_connection((self.server.host, self.server.port))
        try:
            self._exchange(phone, upstream)
        except OSError:
            pass
        finally:
            upstream.close()
            phone.close()

    def _exchange(self, phone, upstream):
        asked, answered = phone.makefile("rb"), upstream.makefile("rb")
        while True:
            request = self._message(asked)
            if request is None:
                return
            if not self.has_signal:
                return self._reset(phone)
            line, headers, raw, body = request
            ids = self._operations(line, headers, body)
            upstream.sendall(raw)
            answer = self._message(answered)
            if answer is None:
                return
            if ids:
                self.sent.append(ids)
                if self.lose_answers > 0:
                    self.lose_answers -= 1
                    self.lost += ids
                    return self._reset(phone)
                if self.on_answer:
                    self.on_answer(ids)
            phone.sendall(answer[2])

    @staticmethod
    def _operations(line, headers, body):
        if not line.startswith("POST /v1/push"):
            return []
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return [op["id"] for group in json.loads(body)["groups"] for op in group["ops"]]

    def stop(self):
        self.listener.close()


def sqlite(path, sql, writing=False):
    """What the sqlite3 shell says: not our code, and not our numbers."""
    mode = ["-cmd", ".timeout 5000"] if writing else ["-readonly"]
    return subprocess.run(
        ["sqlite3", *mode, path, sql], check=True, capture_output=True, text=True).stdout.strip()


def token(fieldpost, store, scope):
    return subprocess.run(
        [fieldpost, "token", "create", "--store", store, "--tenant", "main", "--scope", scope],
        check=True, capture_output=True, text=True).stdout.strip()


def fieldpost_binary():
    """The program to drive: $FIELDPOST, or the release build."""
    return os.environ.get("FIELDPOST", ".build/release/fieldpost")

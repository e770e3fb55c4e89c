"""A stand-in for the Hugging Face Hub: as much of its HTTP interface as sending and bringing folders needs.

The service itself cannot be had in tests. The client is the real one, huggingface_hub.
"""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

LARGE = (".arrow", ".safetensors")  # what the Hub keeps beside the repository


class Hub:
    """Repositories by kind and name: the content of each file."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}  # by "datasets/user/name" or "models/user/name"
        self.private: set[str] = set()
        self.objects: dict[str, bytes] = {}
        self.tokens: set[str] = set()
        hub = self

        class Handler(_Handler):
            store = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Hub":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    def version(self, repository: str) -> str:
        listing = sorted(
            (path, hashlib.sha256(text).hexdigest()) for path, text in self.files[repository].items()
        )
        return hashlib.sha1(json.dumps(listing).encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Hub

    def log_message(self, *_) -> None:
        pass

    def do_POST(self) -> None:
        body, path = self._body(), self.path.partition("?")[0]
        if "Authorization" not in self.headers:
            return self._answer({"error": "Unauthorized"}, 401)
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        if path.endswith("/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            return self._answer({"transfer": "basic", "objects": [self._upload(each) for each in objects]})
        if "/preupload/" in path:
            return self._answer({"files": [self._mode(each) for each in json.loads(body)["files"]]})
        repository = path.removeprefix("/api/").partition("/commit/")[0]
        self._commit(repository, [json.loads(line) for line in body.splitlines() if line])

    def _create(self, asked: dict[str, Any]) -> None:
        owner = asked.get("organization") or "somebody"
        name = f"{asked.get('type', 'model')}s/{owner}/{asked['name']}"
        address = f"{self.store.address}/{name.removeprefix('models/')}"
        if name in self.store.files:
            return self._answer({"error": "You already created this repo", "url": address}, 409)
        self.store.files[name] = {}
        self.store.private |= (
            {name} if "private" in (asked.get("visibility"), asked.get("private") and "private") else set()
        )
        self._answer({"url": address, "name": f"{owner}/{asked['name']}", "id": name})

    def _mode(self, each: dict[str, Any]) -> dict[str, Any]:
        mode = "lfs" if each["path"].endswith(LARGE) else "regular"
        return {"path": each["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None}

    def _upload(self, each: dict[str, Any]) -> dict[str, Any]:
        if each["oid"] in self.store.objects:
            return each
        return {**each, "actions": {"upload": {"href": f"{self.store.address}/objects/{each['oid']}"}}}

    def _commit(self, repository: str, lines: list[dict[str, Any]]) -> None:
        files = self.store.files[repository]
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.store.objects[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        version = self.store.version(repository)
        address = f"{self.store.address}/{repository.removeprefix('models/')}/commit/{version}"
        self._answer({"success": True, "commitOid": version, "commitUrl": address})

    def do_PUT(self) -> None:
        content, name = self._body(), self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == name
        self.store.objects[name] = content
        self._answer({})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        if "/resolve/" in path:
            return self._file(path)
        kind, owner, name, *rest = [*path.removeprefix("/api/").split("/"), "", ""]  # the client asks more
        repository = f"{kind}/{owner}/{name}"
        if repository not in self.store.files:
            return self._missing("RepoNotFound")
        files, version = self.store.files[repository], self.store.version(repository)
        if rest[:1] == ["tree"]:
            return self._answer(
                [{"type": "file", "path": p, "size": len(t), "oid": "0"} for p, t in files.items()]
            )
        listed = [{"rfilename": path} for path in sorted(files)]
        self._answer({"id": f"{owner}/{name}", "sha": version, "siblings": listed, "private": False})

    def _file(self, path: str) -> None:
        place, _, inside = path.strip("/").partition("/resolve/")
        repository = place if place.startswith("datasets/") else f"models/{place}"
        content = self.store.files.get(repository, {}).get(inside.partition("/")[2])
        if content is None:
            return self._missing("EntryNotFound")
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.store.version(repository))
        self._send(content, "application/octet-stream")

    def _missing(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self._send(b"{}", "application/json")

    def _answer(self, content: Any, code: int = 200) -> None:
        self.send_response(code)
        self._send(json.dumps(content).encode(), "application/json")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))


if __name__ == "__main__":  # for the documentation: print the address and serve until the process is stopped
    with Hub() as service:
        print(service.address, flush=True)
        threading.Event().wait()

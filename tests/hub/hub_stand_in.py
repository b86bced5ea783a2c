"""A stand-in for the Hub on this machine: the few requests by which repositories are made, filled and read.

It answers as the Hub's clients expect, keeps everything in memory, and can be told to fail. Commits hold whole trees:
path to content, large files by the SHA-256 of theirs, as in Git LFS.
"""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
LARGE = (".safetensors", ".bin")


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """Repositories and large files, by which tokens they may be used, and what shall go wrong.

    Args:
        tokens: user of each token; a user may write to repositories of that name.
        faults: (method, pattern of the path, status to answer or "cut" to break the connection off).
    """

    def __init__(self):
        self.tokens = {"hf_jane": "jane", "hf_reader": "reader"}
        self.faults = []
        self.requests = []
        self.repos = {}
        self.large = {}

    def tree(self, repo, revision="main"):
        """The files of a revision: bytes by path."""
        found = self.repos[repo]
        return found["commits"][found["branches"].get(revision, revision)]["tree"]

    def messages(self, repo, revision="main"):
        """The messages of the commits of a branch, oldest first."""
        found, messages = self.repos[repo], []
        commit = found["branches"][revision]
        while commit:
            messages.insert(0, found["commits"][commit]["message"])
            commit = found["commits"][commit]["parent"]
        return messages

    def create(self, repo, private):
        self.repos[repo] = {"private": private, "branches": {"main": None}, "commits": {}}
        self.commit(repo, "main", {".gitattributes": b"*.safetensors filter=lfs\n"}, "initial commit")

    def commit(self, repo, branch, tree, message):
        found = self.repos[repo]
        parent = found["branches"][branch]
        commit = hashlib.sha1(json.dumps([parent, message, sorted(tree), len(found["commits"])]).encode()).hexdigest()
        found["commits"][commit] = {"tree": tree, "message": message, "parent": parent}
        found["branches"][branch] = commit
        return commit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        """Write nothing to standard error."""

    def answer(self, status=200, content=None, body=b"", **headers):
        if content is not None:
            body = json.dumps(content).encode()
            headers["content-type"] = "application/json"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, message=""):
        self.answer(status, {"error": message or code}, X_Error_Code=code, X_Error_Message=message or code)

    def handle_request(self):
        hub, address = self.server.hub, urlsplit(self.path)
        path, self.query = unquote(address.path), parse_qs(address.query)
        hub.requests.append((self.command, path))
        for method, pattern, what in hub.faults:
            if self.command == method and re.search(pattern, path):
                if what == "cut":  # after a part of the request
                    self.rfile.read(min(100, int(self.headers.get("Content-Length", 0))))
                    self.close_connection = True
                    self.connection.close()
                    return
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.refuse(what, "Fault", "as the test wants it")
                return
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.user = hub.tokens.get(token)
        if token and not self.user:
            self.refuse(401, "", "Invalid credentials in Authorization header")
            return
        for method, pattern, action in ROUTES:
            match = re.fullmatch(pattern, path)
            if match and self.command in method.split():
                parts = match.groupdict()
                if "repo" in parts and not self.may_use(parts["repo"], writes=self.command == "POST"):
                    return
                action(self, hub, **parts)
                return
        self.refuse(404, "NotFound", f"the stand-in has no {self.command} {path}")

    do_GET = do_HEAD = do_POST = do_PUT = handle_request

    def may_use(self, repo, writes):
        found = self.server.hub.repos.get(repo)
        owner = repo.split("/")[0]
        if found is None or (found["private"] and self.user != owner):
            self.refuse(404 if self.user else 401, "RepoNotFound")
        elif writes and self.user != owner:
            self.refuse(403, "Forbidden", "this token may not write here")
        else:
            return True
        return False

    def find_tree(self, hub, repo, revision):
        found = hub.repos[repo]
        commit = found["branches"].get(revision, revision)
        if commit not in found["commits"]:
            self.refuse(404, "RevisionNotFound")
            return None, None
        return commit, found["commits"][commit]["tree"]

    def validate_card(self, hub):
        card = json.loads(self.body)["content"]
        try:
            metadata = yaml.safe_load(card.split("---\n")[1])
            errors = [] if isinstance(metadata, dict) else ["the metadata is no table"]
            if re.match("[a-z]", metadata.get("license", "a")) is None or metadata.get("license") == "no-licence":
                errors.append('"license" must be one of a list')
        except (yaml.YAMLError, IndexError) as error:
            errors = [str(error)]
        found = [{"message": message} for message in errors]
        self.answer(400 if errors else 200, {"errors": found, "warnings": []})

    def create_repo(self, hub):
        wanted = json.loads(self.body)
        owner = wanted.get("organization") or self.user
        repo = f"{owner}/{wanted['name']}"
        if not self.user:
            self.refuse(401, "", "Invalid username or password.")
        elif owner != self.user:
            self.refuse(403, "Forbidden", f"you may not make repositories of {owner}")
        elif repo in hub.repos:
            self.answer(409, {"error": "You already created this model repo", "url": f"{self.server.url}/{repo}"})
        else:
            hub.create(repo, private=wanted.get("visibility") == "private")
            self.answer(200, {"url": f"{self.server.url}/{repo}"})

    def create_branch(self, hub, repo, revision):
        branches = hub.repos[repo]["branches"]
        if revision in branches:
            self.refuse(409, "Conflict", "this branch exists")
        else:
            branches[revision] = branches["main"]
            self.answer(200, {})

    def model_info(self, hub, repo, revision=None):
        commit, tree = self.find_tree(hub, repo, revision or "main")
        if tree is not None:
            siblings = [{"rfilename": path} for path in sorted(tree)]
            private = hub.repos[repo]["private"]
            self.answer(200, {"id": repo, "sha": commit, "private": private, "siblings": siblings, "tags": []})

    def list_tree(self, hub, repo, revision, folder=None):
        _, tree = self.find_tree(hub, repo, revision)
        if tree is None:
            return
        inside = {path: content for path, content in tree.items() if not folder or path.startswith(folder + "/")}
        if folder and not inside:
            self.refuse(404, "EntryNotFound")
            return
        entries = [
            {"type": "file", "path": path, "size": len(content), "oid": git_hash(content)}
            for path, content in sorted(inside.items())
            if self.query.get("recursive") == ["true"] or "/" not in path.removeprefix(f"{folder}/" if folder else "")
        ]
        self.answer(200, entries)

    def preupload(self, hub, repo, revision):
        _, tree = self.find_tree(hub, repo, revision)
        files = []
        for file in json.loads(self.body)["files"] if tree is not None else ():
            large, there = file["path"].endswith(LARGE), tree.get(file["path"])
            hashed = None if there is None else hashlib.sha256(there).hexdigest() if large else git_hash(there)
            mode = "lfs" if large else "regular"
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": hashed})
        if tree is not None:
            self.answer(200, {"files": files})

    def large_batch(self, hub, repo):
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            upload = {"actions": {"upload": {"href": f"{self.server.url}/large/{wanted['oid']}"}}}
            objects.append({**wanted, **({} if wanted["oid"] in hub.large else upload)})
        self.answer(200, {"transfer": "basic", "objects": objects})

    def large_file(self, hub, oid):
        if self.command != "PUT":
            self.answer(200, body=hub.large[oid], ETag=f'"{oid}"')
        elif hashlib.sha256(self.body).hexdigest() != oid:
            self.refuse(400, "BadRequest", "the content is not that of its name")
        else:
            hub.large[oid] = self.body
            self.answer(200)

    def commit(self, hub, repo, revision):
        _, tree = self.find_tree(hub, repo, revision)
        if tree is None:
            return
        tree, message = dict(tree), ""
        for line in self.body.decode().splitlines():
            entry = json.loads(line)
            key, value = entry["key"], entry["value"]
            if key == "header":
                message = value["summary"]
            elif key == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                tree[value["path"]] = hub.large[value["oid"]]
            elif key == "deletedFile":
                del tree[value["path"]]
        oid = hub.commit(repo, revision, tree, message)
        self.answer(200, {"commitUrl": f"{self.server.url}/{repo}/commit/{oid}", "commitOid": oid})

    def resolve(self, hub, repo, revision, path):
        commit, tree = self.find_tree(hub, repo, revision)
        if tree is None:
            return
        if path not in tree:
            self.answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        elif path.endswith(LARGE):
            oid = hashlib.sha256(tree[path]).hexdigest()
            linked = {"X_Linked_Etag": f'"{oid}"', "X_Linked_Size": len(tree[path])}
            elsewhere = self.server.url.replace("127.0.0.1", "localhost")  # the Hub keeps large files on another host
            self.answer(302, X_Repo_Commit=commit, Location=f"{elsewhere}/large/{oid}", **linked)
        else:
            self.answer(200, body=tree[path], X_Repo_Commit=commit, ETag=f'"{git_hash(tree[path])}"')


ROUTES = [
    ("POST", "/api/validate-yaml", Handler.validate_card),
    ("POST", "/api/repos/create", Handler.create_repo),
    ("GET", rf"/api/models/{REPO}(?:/revision/(?P<revision>.+))?", Handler.model_info),
    ("GET", rf"/api/models/{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?", Handler.list_tree),
    ("POST", rf"/api/models/{REPO}/branch/(?P<revision>.+)", Handler.create_branch),
    ("POST", rf"/api/models/{REPO}/preupload/(?P<revision>.+)", Handler.preupload),
    ("POST", rf"/api/models/{REPO}/commit/(?P<revision>.+)", Handler.commit),
    ("POST", rf"/{REPO}\.git/info/lfs/objects/batch", Handler.large_batch),
    ("GET HEAD PUT", r"/large/(?P<oid>[0-9a-f]{64})", Handler.large_file),
    ("GET HEAD", rf"/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", Handler.resolve),
]


@contextmanager
def run_hub():
    """Serve a new hub on a free port; give it, with its `url`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub = server.hub = Hub()
    hub.url = server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def use_hub(monkeypatch, hub, tmp_path, token="hf_jane"):
    """Send the Hub's clients of this process to the stand-in, with this token or with none."""
    import huggingface_hub.utils._http as http
    import transformers.utils.hub
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(transformers.utils.hub, "_hf_api", None)
    monkeypatch.setattr(http.time, "sleep", lambda seconds: None)  # between attempts
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)

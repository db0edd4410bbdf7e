"""Downloads from a server of our own, which cuts, refuses and lies."""

import errno
import io
import os
import subprocess
import sys
import threading
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from zipfile import ZipFile

import pytest

from companion.data import download, files
from companion.data.download import checksum, fetch
from companion.data.files import locate
from companion.data.pinned import FILES, INSIDE, NOTICES, File

ROOT = Path(__file__).parents[2]
DATA = Random(0).randbytes(300_007)
SUM = sha256(DATA).hexdigest()
ZIP = "tatoeba-cmn-eng/cmn-eng.zip"
TEXT = "tatoeba-cmn-eng/cmn.txt"


class Server(ThreadingHTTPServer):
    """Has one file; notes from where it was asked for.

    ``cuts`` says after how many bytes each answer ends, the first one first.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.ranges, self.status, self.cuts = DATA, True, None, []
        self.asked, self.answers = [], threading.Event()
        self.answers.set()
        self.url = f"http://127.0.0.1:{self.server_port}/file"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers as its server is told to."""

    def do_GET(self):
        server = self.server
        start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        server.asked.append(start)
        server.answers.wait(60)
        if server.status:
            self.send_error(server.status)
            return
        start = start if server.ranges else 0
        rest = server.data[start:]
        self.send_response(206 if server.ranges else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: server.cuts.pop(0) if server.cuts else None])

    def log_message(self, *args):
        """Nothing: the test says what it expects."""


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "file"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no local copy."""
    monkeypatch.delenv("COMPANION_DATA", raising=False)
    monkeypatch.setattr(
        files.platformdirs, "user_cache_path", lambda name: tmp_path / name
    )
    return tmp_path / "companion"


def get(server, path, **changed):
    known = {"sha256": SUM, "size": len(DATA), **changed}
    return fetch(server.url, path, **known)


def part_of(path):
    return path.with_name("file.part")


def names(folder):
    """What lies there, without the lock."""
    return {p.name for p in folder.iterdir() if p.suffix != ".lock"}


def test_a_file_is_downloaded_once(server, path):
    for _ in range(2):
        assert get(server, path) == path
        assert path.read_bytes() == DATA
    assert server.asked == [0]
    assert names(path.parent) == {"file"}


@pytest.mark.parametrize(
    ("part", "ranges", "cuts", "asked"),
    [
        pytest.param(
            b"", True, [100_003, 50_021], [0, 100_003, 150_024], id="cut"
        ),
        pytest.param(DATA[:70_001], True, [], [70_001], id="an earlier run"),
        pytest.param(b"", False, [100_003], [0, 100_003], id="no ranges"),
        pytest.param(DATA, True, [], [], id="whole"),
        pytest.param(DATA + b"more", True, [], [0], id="too long"),
    ],
)
def test_only_what_is_missing_is_asked_for(
    server, path, part, ranges, cuts, asked
):
    server.ranges, server.cuts = ranges, cuts
    if part:
        path.parent.mkdir()
        part_of(path).write_bytes(part)
    get(server, path)
    assert path.read_bytes() == DATA
    assert server.asked == asked


def test_a_file_that_has_changed_on_the_disk_is_downloaded_again(server, path):
    get(server, path)
    path.write_bytes(DATA[:-1])
    get(server, path)
    assert path.read_bytes() == DATA


def test_of_processes_at_once_one_downloads_and_the_others_wait(server, path):
    code = (
        "import sys; from companion.data.download import fetch\n"
        "print('ready', flush=True)\n"
        "fetch(sys.argv[1], sys.argv[2], sha256=sys.argv[3], size=300007)"
    )
    server.answers.clear()
    command = [sys.executable, "-c", code, server.url, str(path), SUM]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in running:
        assert process.stdout.readline() == b"ready\n"
    time.sleep(0.3)  # Were there no lock, all would have asked by then.
    server.answers.set()
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert path.read_bytes() == DATA
    assert server.asked == [0]
    assert names(path.parent) == {"file"}


def test_a_process_killed_in_the_middle_leaves_what_came(server, path):
    """And its lock goes with it."""
    code = (
        "import os, sys; from companion.data import download\n"
        "done = download._continue\n"
        "def die(*args):\n"
        "    done(*args)\n"
        "    os.kill(os.getpid(), 9)\n"
        "download._continue = die\n"
        "download.fetch(*sys.argv[1:3], sha256='', size=300007)"
    )
    server.cuts = [100_003]
    killed = subprocess.run(
        [sys.executable, "-c", code, server.url, str(path)], cwd=ROOT
    )
    assert killed.returncode == -9
    assert names(path.parent) == {"file.part"}
    get(server, path)
    assert path.read_bytes() == DATA
    assert server.asked == [0, 100_003]


# Errors, and what is left.


def test_a_connection_that_breaks_again_and_again_keeps_what_came(server, path):
    server.cuts = [11, 13, 17]
    match = r"41 of 300007 bytes came .*cut.*\. What came is kept: run it again"
    with pytest.raises(ConnectionError, match=match):
        get(server, path)
    assert names(path.parent) == {"file.part"}
    get(server, path)
    assert path.read_bytes() == DATA
    assert server.asked == [0, 11, 24, 41]


def test_without_a_network_the_message_says_what_to_do(server, path):
    url = server.url
    server.stop()
    match = (
        rf"^{url}: 0 of .*refused.*Without a network, get the file another "
        rf"way and put it at {path}, or set COMPANION_DATA"
    )
    with pytest.raises(ConnectionError, match=match):
        fetch(url, path, sha256=SUM, size=len(DATA))
    assert names(path.parent) == set()


@pytest.mark.parametrize("status", [404, 503])
def test_what_the_server_refuses_is_told(server, path, status):
    server.status = status
    with pytest.raises(ConnectionError, match=f"0 of .* Error {status}"):
        get(server, path)


def test_a_silent_server_is_not_waited_for_without_end(path, monkeypatch):
    monkeypatch.setattr(download, "PATIENCE", 0.05)
    silent = Server.__mro__[1](("127.0.0.1", 0), Handler)  # Never serves.
    url = f"http://127.0.0.1:{silent.server_port}/file"
    with silent, pytest.raises(ConnectionError, match="timed out"):
        fetch(url, path, sha256=SUM, size=len(DATA))


def test_a_wrong_checksum_names_both_and_keeps_nothing(server, path):
    server.data = DATA[:-1] + b"x"
    got = sha256(server.data).hexdigest()
    match = f"expected SHA-256 {SUM}, got {got}. What came is deleted"
    with pytest.raises(ValueError, match=match):
        get(server, path)
    assert names(path.parent) == set()
    server.data = DATA
    get(server, path)
    assert path.read_bytes() == DATA


def test_a_full_disk_is_named_and_what_came_is_kept(server, path, monkeypatch):
    room = 2 * download.CHUNK

    class Disk(io.FileIO):
        def write(self, chunk):
            if self.tell() + len(chunk) > room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(chunk)

    with monkeypatch.context() as context:
        context.setattr(Path, "open", lambda self, mode: Disk(self, mode))
        match = rf"file.part: the disk is full after {room} of 300007 bytes"
        with pytest.raises(OSError, match=match) as caught:
            get(server, path)
    assert caught.value.errno == errno.ENOSPC
    assert names(path.parent) == {"file.part"}
    get(server, path)
    assert path.read_bytes() == DATA
    assert server.asked == [0, room]


# Where the corpora lie.


def serve(server, monkeypatch, name, data, table=FILES):
    """Makes the server the place where that file of the corpora comes from."""
    server.data = data
    file = File(sha256(data).hexdigest(), len(data), server.url)
    monkeypatch.setitem(table, name, file)


def zipped(text):
    data = io.BytesIO()
    with ZipFile(data, "w") as archive:
        archive.writestr("cmn.txt", text)
        archive.writestr("_about.txt", "no matter")
    return data.getvalue()


def test_a_corpus_is_downloaded_into_the_cache_folder(
    server, cache, monkeypatch, capsys
):
    name = "tinyshakespeare/input.txt"
    serve(server, monkeypatch, name, b"To be\n")
    for _ in range(2):
        assert locate(name) == cache / name
    assert (cache / name).read_bytes() == b"To be\n"
    assert server.asked == [0]
    notice = NOTICES["tinyshakespeare"]
    assert capsys.readouterr().err == f"{notice}\n"  # Once.
    assert (cache / name).with_name("NOTICE.txt").read_text() == f"{notice}\n"


def test_the_zip_of_tatoeba_is_unpacked_once(server, cache, monkeypatch):
    text = "Hi.\t嗨。\tme\n".encode()
    serve(server, monkeypatch, ZIP, zipped(text))
    file = File(sha256(text).hexdigest(), len(text), ZIP)
    monkeypatch.setitem(INSIDE, TEXT, file)
    for _ in range(2):
        assert locate(TEXT) == cache / TEXT
        assert (cache / TEXT).read_bytes() == text
        (cache / ZIP).unlink(missing_ok=True)
    assert server.asked == [0]


def test_a_zip_with_another_text_is_refused(server, cache, monkeypatch):
    serve(server, monkeypatch, ZIP, zipped("Hi.\n"))
    want = INSIDE[TEXT].sha256
    with pytest.raises(ValueError, match=f"cmn.txt: .* SHA-256 {want}, got"):
        locate(TEXT)
    assert not (cache / TEXT).exists()


def test_a_local_copy_needs_no_network_and_no_cache(
    server, cache, monkeypatch, tmp_path
):
    name = "tinyshakespeare/input.txt"
    serve(server, monkeypatch, name, b"To be\n")
    local = tmp_path / "local"
    (local / name).parent.mkdir(parents=True)
    (local / name).write_bytes(b"To be\n")
    monkeypatch.setenv("COMPANION_DATA", str(local))
    assert locate(name) == local / name
    assert server.asked == []
    assert not cache.exists()


def test_a_local_copy_is_checked_and_never_touched(monkeypatch, tmp_path):
    name = "tinyshakespeare/input.txt"
    monkeypatch.setenv("COMPANION_DATA", str(tmp_path))
    match = r"input\.txt: expected this file, because COMPANION_DATA is set"
    with pytest.raises(FileNotFoundError, match=match):
        locate(name)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_bytes(b"To be\n")
    got = sha256(b"To be\n").hexdigest()
    match = rf"input\.txt: .* SHA-256 {FILES[name].sha256}, got {got}"
    with pytest.raises(ValueError, match=match):
        locate(name)
    assert (tmp_path / name).read_bytes() == b"To be\n"


def test_every_file_is_pinned_to_a_commit_and_a_checksum():
    for name, file in FILES.items():
        assert name.partition("/")[0] in NOTICES
        assert file.url.startswith("https://raw.githubusercontent.com/")
        assert len(file.url.split("/")[5]) == 40
        assert file.url.endswith(name.rpartition("/")[2])
        assert len(file.sha256) == 64
    assert len({file.sha256 for file in FILES.values()}) == len(FILES)


def test_the_real_files_are_those_that_are_pinned():
    folder = os.environ.get("COMPANION_DATA")
    if not folder:
        pytest.skip("COMPANION_DATA names no folder with the real corpora")
    for name, file in (FILES | INSIDE).items():
        if name == ZIP:  # A local copy has what was in it.
            continue
        assert checksum(locate(name)) == file.sha256
        assert locate(name).stat().st_size == file.size

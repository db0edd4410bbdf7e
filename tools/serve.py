"""Serve the built book on this machine and open it.

    python tools/serve.py FOLDER [PORT]

Without PORT, any free port.
"""

import functools
import sys
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Pages(SimpleHTTPRequestHandler):
    """Serves files, and does not print a line for each."""

    def log_message(self, *_):
        """Say nothing."""


def server(folder: str, port: str = "0") -> ThreadingHTTPServer:
    """A server of ``folder`` for this machine only; port 0 is any free one.

    Raises:
        ValueError: ``port`` is no port number, or somebody else uses it.
    """
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"PORT: expected a number up to 65535, got {port!r}")
    handler = functools.partial(Pages, directory=folder)
    try:
        return ThreadingHTTPServer(("127.0.0.1", int(port)), handler)
    except OSError as error:
        raise ValueError(
            f"PORT: {port} is not free ({error.strerror}). "
            "Leave PORT out, and a free one is found."
        ) from error


def main(arguments: list[str]) -> None:
    """Serve until Ctrl-C."""
    try:
        pages = server(*arguments)
    except ValueError as error:
        sys.exit(str(error))
    address = f"http://127.0.0.1:{pages.server_port}/"
    print(f"The book is at {address} (Ctrl-C ends)", flush=True)
    webbrowser.open(address)
    try:
        pages.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main(sys.argv[1:])

"""``python -m companion``: train a model, and ask it to translate."""

import sys

from companion.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m companion``: train a model, let it translate, check yours."""

import sys

from companion.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

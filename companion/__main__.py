"""``python -m companion``: train a model, let it translate, check yours."""

import os
import sys

if __name__ == "__main__":
    # ``-m`` looks for modules in this folder first, where a ``random.py`` would
    # be run for Python's own. Processes that are started here shall not either.
    sys.path.append(sys.path.pop(0))
    os.environ["PYTHONSAFEPATH"] = "1"

    from companion.commands import main

    sys.exit(main(sys.argv[1:]))

"""``python -m profwin`` is the command ``profwin``."""

from __future__ import annotations

import sys

from profwin.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""Run the command line: ``python -m calstat``."""

from __future__ import annotations

import sys

from calstat._cli import main

if __name__ == "__main__":
    sys.exit(main())

"""python -m studio: the command line of the studio."""

import sys

from studio.cli import main

if __name__ == "__main__":
    sys.exit(main())

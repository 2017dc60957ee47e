"""`python -m didact` is the command `didact`."""

import sys

from ._command import main

sys.exit(main())

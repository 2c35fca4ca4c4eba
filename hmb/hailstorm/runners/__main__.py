"""The program of a worker process: `python -m hmb.hailstorm.runners`."""

import sys

from hmb.hailstorm.runners.worker import main

sys.exit(main())

import sys

from fairseq_capsule_lab.cli import main

sys.exit(main())

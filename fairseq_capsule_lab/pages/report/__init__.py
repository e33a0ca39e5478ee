"""One page that compares evaluated runs.

| module | |
|---|---|
| `systems` | reads the runs and refuses runs that cannot be compared |
| `comparison` | scores with intervals, by length, sentence by sentence |
| `page` | the page as one self-contained file |
"""

"""One page that compares evaluated runs.

| module | |
|---|---|
| `systems` | reads the runs and refuses runs that cannot be compared |
| `comparison` | scores with intervals, by length, sentence by sentence |
| `tables` | the tables of the page |
| `drawings` | the charts of the page |
| `page` | the page as one self-contained file |
"""

"""One page that compares evaluated runs.

| module | |
|---|---|
| `systems` | reads the runs and refuses what cannot be compared |
| `training_log` | curves, parameters and speed from a training's log |
| `comparison` | scores with intervals, by length, sentence by sentence |
| `tables` | the tables of the page |
| `drawings` | its charts |
| `page` | the page, whole in one file |
"""

"""A local web server that translates text and shows what the model routes.

| module | |
|---|---|
| `bodies` | validates requests; an invalid request gets a 4xx status |
| `translator` | the loaded models; answers a valid request |
| `limits` | one translation at a time, a bounded queue, a rate for each address |
| `guards` | checks of host and origin, and the headers of every answer |
| `application` | the routes |
| `running` | the port, and the start and end of the server |
"""

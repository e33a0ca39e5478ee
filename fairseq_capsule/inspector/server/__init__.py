"""A web server on this computer that translates what a reader types and shows what the model routes.

| module | |
|---|---|
| `bodies` | what a request may ask for; everything else is refused with a 4xx status |
| `translator` | the loaded models; it turns a valid request into an answer |
| `limits` | one translation at a time, a bounded queue, a rate for each address |
| `guards` | which hosts and origins may ask, and the headers of every answer |
| `application` | the routes |
| `running` | the port, and the server's start and end |
"""

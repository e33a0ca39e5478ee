"""A local web server that translates text and shows what the model routes.

| module | |
|---|---|
| `requests` | validates requests; an invalid request gets a 4xx status |
| `translator` | the loaded models; answers a valid request |
| `limits` | the port, hosts and origins, headers, one translation at a time, a bounded queue, a rate for each address |
| `application` | the routes |
"""

"""A local web server that translates text and shows what the model routes; `application` has the routes."""

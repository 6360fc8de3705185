"""Reading over HTTP: `cdc-views serve`.

server.py       listens, and ends connections of clients that do not read
app.py          the application: the routes, and what applies to each request
gate.py         lets a request in: its token, its host, and how many there are
service.py      what the routes share: the warehouse, threads, limits
moments.py      the parameters that say at which moment to read, and the headers that say what was read
answers/        answers of rows: their format, and their ETag
problems.py     errors as problem details (RFC 9457), and the status of each
limits.py       how much may happen at the same time
shared.py       work whose result all share who ask while it runs
watch.py        waits for new epochs, for all requests together
counters.py     metrics for Prometheus
description.py  describes the interface for people, as one HTML file that loads nothing
routes/         one file for each group of routes
"""

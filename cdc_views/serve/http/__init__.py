"""Reading over HTTP: `cdc-views serve`.

server.py    listens, and ends connections of clients that do not read
app.py       the application: the routes, and what applies to each request
gate.py      lets a request in: its token, its host, and how many there are
service.py   what the routes share: the warehouse, threads, limits
moments.py   the parameters that say at which moment to read, and the headers that say what was read
etags.py     what an answer is the same as, so that it is not sent again
keys.py      keys of rows in paths and parameters
answers.py   answers of rows
formats.py   rows as JSON, NDJSON or Arrow
problems.py  errors as problem details (RFC 9457), and the status of each
limits.py    how much may happen at the same time
watch.py     waits for new epochs, for all requests together
counters.py  metrics for Prometheus
page.py      the page that describes the interface, without files of others
routes/      one file for each group of routes
"""

"""The source, Postgres: catalog, preflight, publication, slot, markers, and the capture of DDL and TRUNCATE.

connection.py   connections, and errors of Postgres without passwords
catalog.py      the tables' columns, keys and replica identities
toast.py        columns that can hold a value stored out of line
publication.py  the publication of the connector
slot.py         the replication slot
slot_watch.py   watches the slot while an engine runs
removal.py      removes what a project created: `destroy`
service/        the service schema: its tables, triggers, markers and the captured set
checks/         what must hold before a start: `check`
reading/        reading rows and positions
"""

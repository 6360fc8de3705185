"""The command line: one command per file, without logic of its own.

main.py          the group of commands, and what all commands share
setup/           init, up, sql, check, down, destroy
readers/         query, get, timeline, search, changes, status, epochs, explain, serve
operate/         run, rebuild, rollback, reset, quarantine
analysis.py      Spark's analyser, for commands that run no engine
consent.py       the question before something that is hard to undo
epoch_report.py  the log lines of published epochs
log_lines.py     the format of the lines on stderr
output.py        rows as a table, as JSON or as CSV
progress.py      progress bars
sql_shell.py     the shell of `sql`
"""

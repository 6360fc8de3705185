"""The machine and the processes that the system runs in.

clock.py          the clock as an interface
waiting.py        waiting for a condition for a limited time
signals.py        when a signal may interrupt this process
priority.py       the share of the processors that a process gets
os_lock.py        the operating system's lock of an open file
locations.py      folders for downloads, for the native stack and for the demo
class_archive.py  where the classes of a JVM are archived
exit_status.py    the meaning of a process's exit status
"""

"""Spark's driver: its configuration, its JVM, the session, and the work of its jobs.

settings.py       the configuration of Spark
gateway.py        starts a JVM and connects to it
session.py        starts and stops a session, in one JVM per process
worker_daemon.py  forks the Python workers of Spark's tasks
driver.py         a session that starts in the background and is replaced when its JVM ends
lost_driver.py    recognises errors that are due to the end of the JVM
jobs.py           groups of jobs, and the work that Spark counted for them
catalyst.py       plans of Spark as the JVM's objects
environment.py    changes of environment variables for the duration of a block
"""

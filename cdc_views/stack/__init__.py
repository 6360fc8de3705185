"""The local stack without Docker: pinned files, and Postgres, Kafka and Connect as plain processes.

local.py          the stack in one state folder: starts and stops the services
services/         the services, their processes and ports
pins.py           what is pinned in `stack.lock`; lock.py writes that file
fetch.py          brings the pinned files into the cache; ivy.py fetches them
folders.py        folders of the cache and the state, with their permissions
java.py           Java, which the user installs
class_archive.py  makes the JVMs of Spark, Kafka and Connect start faster
image_files.py    the files of the Docker images; image_settings.py writes their settings
"""

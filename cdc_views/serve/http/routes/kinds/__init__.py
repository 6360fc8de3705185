"""Views that are read by their kind: one file for each kind.

search.py    GET /views/{name}/search
timeline.py  GET /views/{name}/timeline
cache.py     GET /views/{name}/cache, /views/{name}/cache/{key}
"""

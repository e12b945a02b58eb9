"""Serves Keystone's API with the server that Ironic uses.

usage: serve.py PORT, with the configuration in OS_KEYSTONE_CONFIG_FILES
"""
import sys

from cheroot import wsgi

port = int(sys.argv.pop())  # Keystone reads the command line, too
from keystone.wsgi import api  # noqa: E402

# One thread, because SQLite has one writer.
wsgi.Server(('127.0.0.1', port), api.application, numthreads=1).safe_start()

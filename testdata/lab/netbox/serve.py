"""Bind a port of the kernel's choice, write it down, become gunicorn on that socket.

gunicorn is given the open socket: nobody can take the port between choice and bind.
"""
import os
import socket
import sys

sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sock.bind(('127.0.0.1', 0))
sock.listen(128)
sock.set_inheritable(True)
with open(sys.argv[1], 'w') as file:
    print(sock.getsockname()[1], file=file)
gunicorn = os.path.join(os.path.dirname(sys.executable), 'gunicorn')
os.execv(gunicorn, [
    gunicorn, '--bind', 'fd://%d' % sock.fileno(), '--workers', '2', '--threads', '3', '--preload',
    '--timeout', '120', '--graceful-timeout', '3', '--limit-request-line', '8190', 'netbox.wsgi',
])

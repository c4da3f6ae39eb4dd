"""Follows events over a connection, and vanishes from it without a word once the stored ones have come: its machine takes no packet any more."""

import ctypes
import socket
import struct
import sys

ATTACH_FILTER = 26
host, port, path, token = sys.argv[1:]
connection = socket.create_connection((host, int(port)))
connection.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n".encode())
text = b""
while b"replay.complete" not in text:
    text += connection.recv(65536)
# A program of one instruction, which keeps no byte of a packet.
program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
connection.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(program)))
print("gone", flush=True)
sys.stdin.read()

"""Stand for ``python`` as ``python -IS fork.py ARGUMENTS``: the process that ``FORKED_FROM`` names forks for it.

It hands over its streams, folder, environment and arguments, and ends as the fork ends. Each nested run and each of its
workers starts one: to import ``socket`` and ``json`` would take longer than all that it does.
"""

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket

asking = socket(AF_UNIX)
asking.connect(os.environ["FORKED_FROM"])
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
asking.sendmsg([b"-"], [(SOL_SOCKET, SCM_RIGHTS, streams)])
asking.sendall(marshal.dumps((sys.argv[1:], os.path.realpath("."), dict(os.environ))))
asking.shutdown(SHUT_WR)
os._exit(int(asking.recv(16) or b"1"))

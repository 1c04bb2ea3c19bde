"""Imported last by the process that tests fork others from: what is there by then stays, and is not searched again.

Else each child's garbage collector would go through all modules, and copy the memory that it shares with its parent.
"""

import gc

gc.freeze()

# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: c74d71017b1283c8e0494a0c728cc7c4
TABLES = ()

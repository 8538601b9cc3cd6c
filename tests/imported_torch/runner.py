import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import client

sys.exit(client.main("runner.py", 5))  # zygote.c passes 5 file descriptors

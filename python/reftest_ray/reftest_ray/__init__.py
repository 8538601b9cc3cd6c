"""reftest_ray - verifies a dataset on many machines: one `reftest work` for each GPU, and one coordinator.

- scheduler.py chooses the worker for each request, and handles deaths of workers
- worker_process.py: one `reftest work` as a child process
- coordinator.py: the main loop, which sends requests, receives answers, and stores their verdicts in the cache
- fleet.py: the common part of all kinds of fleets, which knows the workers by name
- local_fleet.py: workers that are children of this process
- ray_fleet.py: workers that are actors of a Ray cluster; the only file that imports ray
- __main__.py: the command line

`reftest` alone decides what is correct: `verify --dry-run` says what is missing, `cache merge` decides which verdicts
are believed, and `verify --cached-only` prints the result."""

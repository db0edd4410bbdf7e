"""Build a class once more, and see what its contracts do not show.

rebuild      with dropout, with fewer heads of keys, with its own defaults
norm_skipped finds keys and values that skip the norm of the queries
cached_steps compares a step with its own cache with the whole sequence
"""

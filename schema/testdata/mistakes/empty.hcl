# No site block at all.

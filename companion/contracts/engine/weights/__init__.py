"""Every weight of a module is to take part in what it returns."""

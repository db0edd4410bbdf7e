"""What kind of component a module is, and what its contracts then say."""

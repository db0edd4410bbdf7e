"""How a learner's code wants to be called, and what it gives back."""

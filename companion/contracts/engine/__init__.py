"""What runs contracts on a learner's function and reports what broke."""

"""What the questions are, and what a learner has answered of them."""

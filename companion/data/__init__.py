"""The course's data, and what turns it into ids and tensors."""

"""What was said of a part that ``check`` has judged."""

__all__ = ["contracts", "excuses", "faults", "said", "told_of"]


def faults(part):
    groups = part["found"]["failed"]
    return [g["message"] for g in groups if g["level"] == "fault"]


def told_of(part):
    return " ".join(g["message"] for g in part["found"]["failed"])


def excuses(part):
    return " ".join(g["excuse"] for g in part["found"]["failed"])


def contracts(part):
    """Name the contracts that do not hold."""
    groups = part["found"]["failed"]
    return " ".join(name for g in groups for name in g["names"])


def said(part):
    return " ".join(part["found"]["assumed"])

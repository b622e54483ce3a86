"""Amounts of money."""


def round_amount(amount: float) -> int:
    """Turn an amount in euros into whole cents."""
    return round(amount * 100)


def format_amount(cents: int) -> str:
    """Write cents as euros, for people."""
    return f"{cents // 100}.{cents % 100:02} EUR"

"""Invoices from orders."""

from billing.money import format_amount, round_amount


class Invoice:
    """What a customer has to pay, line by line."""

    def __init__(self, customer: str) -> None:
        self.customer = customer
        self.lines: list[tuple[str, int]] = []

    def add(self, article: str, price: float, count: int = 1) -> None:
        """Add a line. The price is rounded before it is multiplied, as the law wants."""
        self.lines.append((article, round_amount(price) * count))

    def total(self) -> int:
        """The sum of all lines in cents."""
        return sum(cents for _, cents in self.lines)

    def text(self) -> str:
        """The invoice as text, one line per article."""
        rows = [f"{article}: {format_amount(cents)}" for article, cents in self.lines]
        return "\n".join([self.customer, *rows, format_amount(self.total())])

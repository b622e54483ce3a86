"""Parcels and what they cost to send."""

from billing.money import round_amount

FREE_FROM_CENTS = 5_000


def shipping_cost(weight_kg: float, order_cents: int) -> int:
    """The cost of sending a parcel in cents. Large orders are sent for free."""
    if order_cents >= FREE_FROM_CENTS:
        return 0
    return round_amount(3.90 + 1.20 * weight_kg)

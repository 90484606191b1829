"""The types that scenarios name, as in `cases/FORMAT.md`."""

from typing import Literal

from pydantic import BaseModel, Field


class Escalation(BaseModel):
    reason: str


class Query(BaseModel):
    query: str
    period: str
    limit: int


class Ticket(BaseModel):
    department: Literal["billing", "technical", "sales", "general"]
    priority: Literal["low", "medium", "high", "urgent"]
    user_info: str
    issue_summary: str


class Line(BaseModel):
    sku: str
    quantity: int


class Order(BaseModel):
    id: int
    lines: list[Line]
    note: str | None = None


class Translation(BaseModel):
    text: str = Field(description="Text to translate.")
    source: str = Field(description="Source language.")
    target: str = Field(description="Target language.")


class Booking(BaseModel):
    """A table for a party."""

    guests: int
    smoking: bool | None = None
    day: str = Field(description="A day of the week.")


class Counts(BaseModel):
    counts: dict[str, int]


TYPES: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (Escalation, Query, Ticket, Order, Translation, Booking, Counts)
}

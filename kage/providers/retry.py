"""When a failed request is worth another try, and how long to wait before it."""

from __future__ import annotations

import random

from kage.core.errors import Overloaded, ProviderError, Unreachable
from kage.providers.errors import NoConnection

ATTEMPTS = 5  # requests in all, the first one included
LONGEST = 30.0  # seconds of a wait kage chose itself
PATIENCE = 120.0  # seconds; an endpoint that asks for more is reported instead


def delay(error: ProviderError, attempt: int) -> float | None:
    """Give the seconds to wait after try number ``attempt`` (from 1), None to give up.

    Waits double from one second, with jitter so that many kages do not return at once; what the
    endpoint asked for is honoured. A connection that never came about gets two more tries, on
    this machine none: nothing listens there. The caller decides about a stream that broke after
    the person had seen text: trying again would say it twice.
    """
    if attempt >= ATTEMPTS:
        return None
    match error:
        case NoConnection():
            if error.local or attempt > 2:
                return None
        case Overloaded() | Unreachable():
            pass
        case _:
            return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= PATIENCE else None
    return min(LONGEST, 2.0 ** (attempt - 1)) * random.uniform(0.75, 1.25)

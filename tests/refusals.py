"""Tables of calls that must raise, checked in one test that reports every failure."""


def assert_refused(*cases, error=ValueError):
    """Checks cases `(call, fragment)`: the call raises an error whose message has the fragment.

    `...` in a fragment stands for any text.
    """
    failures = []
    for number, (call, fragment) in enumerate(cases):
        try:
            result = f"returned {call()!r}"
        except error as raised:
            if _contains(str(raised), fragment):
                continue
            result = f"raised {raised}"
        failures.append(f"case {number}, {fragment!r}: {result}")
    assert not failures, "\n".join(failures)


def _contains(message, fragment):
    for part in fragment.split("..."):
        _, found, message = message.partition(part)
        if found != part:
            return False
    return True

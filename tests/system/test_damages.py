"""Files of proofs that are damaged are refused, or have no effect."""

import damages


def test_of_400_damages_none_is_silent_or_a_traceback():
    refused, faults = damages.find_faults(400)
    assert not faults, "\n".join(faults)
    assert refused > 200

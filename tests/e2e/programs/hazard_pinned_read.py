"""A download into page-locked memory without a wait, then a pageable upload, then the host reads the download.

The upload is said to be non-blocking, yet the driver drains its stream first: the download has arrived.
"""

import hazards

result, target, download = hazards.on_device(), hazards.on_device(), hazards.pinned()


def one_round(value):
    result.fill_(value)
    download.copy_(result, non_blocking=True)
    target.copy_(hazards.pageable(value), non_blocking=True)
    return hazards.is_wrong(download, value) or hazards.is_wrong(target.cpu(), value)


if __name__ == "__main__":
    hazards.run(one_round)

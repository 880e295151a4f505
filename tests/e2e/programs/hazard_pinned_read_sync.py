"""A download into page-locked memory without a wait, then a synchronous upload, then the host reads the download.

"A stream sync is performed before the copy is initiated" (CUDA Runtime API, "API synchronization behavior").
"""

import hazards

result, target, download = hazards.on_device(), hazards.on_device(), hazards.pinned()


def one_round(value):
    result.fill_(value)
    download.copy_(result, non_blocking=True)
    hazards.upload(target, hazards.pageable(value), hazards.linked if value % 2 else hazards.runtime)
    return hazards.is_wrong(download, value) or hazards.is_wrong(target.cpu(), value)


if __name__ == "__main__":
    hazards.run(one_round)

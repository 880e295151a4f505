"""What the end-to-end tests share: the library must be built, C programs are compiled once."""

import pytest

import harness


@pytest.fixture(scope="session", autouse=True)
def library():
    assert harness.LIBRARY.is_file(), f"{harness.LIBRARY} is missing: run make first"
    return harness.LIBRARY


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Compiles programs/NAME.c, once per session and set of flags, and gives its path."""
    folder = tmp_path_factory.mktemp("programs")
    done = {}

    def build(name, *flags, library=False, source=None):
        key = name, flags
        if key not in done:
            done[key] = harness.compile_c(folder / name, f"programs/{source or name + '.c'}",
                                          flags=flags, library=library)
        return done[key]

    return build


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    """A folder with the fake libcuda.so.1 and libcudart.so.12."""
    return harness.build_fake(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def out(tmp_path):
    """A run directory that does not exist yet."""
    return tmp_path / "run"

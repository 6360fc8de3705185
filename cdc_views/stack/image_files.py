"""The pinned files of the Docker images: `python -m cdc_views.stack.image_files FOLDER`.

`FOLDER/postgres` has the server's binaries, `FOLDER/kafka` the jars of broker and Connect, `FOLDER/plugins` Debezium.
A step of its own, since it takes minutes and changes with the lock alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cdc_views.stack.fetch import fetch, kafka_jars, plugin_folder, postgres_home


def lay_out(folder: Path) -> None:
    """Fetch and check what is missing, and copy it to where images take it from. Raises DownloadFailed."""
    fetch(progress=False, groups=["postgres", "kafka", "debezium"])
    shutil.copytree(postgres_home(), folder / "postgres", symlinks=True)
    shutil.copytree(plugin_folder(), folder / "plugins")
    (folder / "kafka").mkdir()
    for jar in kafka_jars():
        shutil.copy(jar, folder / "kafka")


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
